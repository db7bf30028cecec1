// What the targets of CSV and JSON lines check of the rows that a Picker finds.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "picking.hpp"

namespace rarestream::fuzz {

struct Picked {
    std::string rows, keys, labels;
    std::vector<double> times;
    std::vector<std::int64_t> lines;
    std::size_t bad = 0;
};

// Runs `parse(picker, parsed)`; `require` is the target's own.
template <class Parse, class Require>
Picked picked(const picking::Options& options, std::size_t size, const Require& require, const Parse& parse) {
    ParsedRows parsed;
    picking::Picker picker(options, {"a", "d", "y", "i"}, parsed);
    parse(picker, parsed);
    const std::size_t n = picker.times.size();
    require(picker.keys.ends.size() == n && picker.lines.size() == n, "a key and a place for every row");
    require(picker.rows.ends.size() == n && picker.labels.ends.size() == (options.label ? n : 0), "a text for every row");
    require(picker.rows.bytes.size() <= size, "no more text than there is");
    for (std::size_t i = 0; i < n; ++i) {
        require(std::isfinite(picker.times[i]), "finite times");
        require(i == 0 || picker.lines[i - 1] < picker.lines[i], "lines ascend");
    }
    return {picker.rows.bytes, picker.keys.bytes, picker.labels.bytes, picker.times, picker.lines, parsed.bad.size()};
}

template <class Require>
void check_picked_cut(const Picked& whole, const Picked& head, const Picked& tail, const Require& require) {
    require(head.rows + tail.rows == whole.rows && head.keys + tail.keys == whole.keys, "a cut changes no row and no key");
    require(head.labels + tail.labels == whole.labels, "a cut changes no label");
    require(head.times.size() + tail.times.size() == whole.times.size(), "a cut loses no row");
    require(head.bad + tail.bad == whole.bad, "a cut changes no verdict");
}

}  // namespace rarestream::fuzz
