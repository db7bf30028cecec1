// What the fuzz targets of all parsers have in common: promises of rows, and whether two results are the same.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "features/murmur3.hpp"
#include "parsed_rows.hpp"
#include "utf8.hpp"

namespace rarestream::fuzz {

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

// In memory of exactly this size, so that the sanitizer sees any read past the end.
class ExactCopy {
public:
    ExactCopy(const char* text, std::size_t size) : copy_(new char[size]) {
        if (size) std::memcpy(copy_.get(), text, size);
    }

    const char* data() const { return copy_.get(); }

private:
    std::unique_ptr<char[]> copy_;
};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The same rows from the same places, and the same lines refused; what a message shows may differ.
inline bool same_meaning(const ParsedRows& a, const ParsedRows& b) {
    if (a.bad.size() != b.bad.size()) return false;
    for (std::size_t i = 0; i < a.bad.size(); ++i) {
        if (a.bad[i].line != b.bad[i].line || a.bad[i].column != b.bad[i].column || a.bad[i].rule != b.bad[i].rule) {
            return false;
        }
    }
    const std::size_t nonzeros = static_cast<std::size_t>(a.indptr.back());
    return a.indptr == b.indptr && same_bytes(a.labels, b.labels) && a.label_texts == b.label_texts && a.lines == b.lines &&
           a.columns == b.columns && same_bytes(a.importances, b.importances) && a.tags == b.tags &&
           a.tag_text == b.tag_text && a.tag_ends == b.tag_ends && a.width == b.width &&
           (nonzeros == 0 || (std::memcmp(a.indices.get(), b.indices.get(), nonzeros * sizeof(std::int32_t)) == 0 &&
                              std::memcmp(a.values.get(), b.values.get(), nonzeros * sizeof(float)) == 0));
}

inline bool same(const ParsedRows& a, const ParsedRows& b) {
    if (!same_meaning(a, b) || a.lines_read != b.lines_read) return false;
    for (std::size_t i = 0; i < a.bad.size(); ++i) {
        if (a.bad[i].token != b.bad[i].token || a.bad[i].field != b.bad[i].field) return false;
    }
    return a.names.hashes == b.names.hashes && a.names.ends == b.names.ends && a.names.text == b.names.text;
}

// What every parser promises of its rows, whatever the text was. `first` is the number of the first line.
inline void check_sound(const ParsedRows& rows, std::int64_t stop_after, std::size_t size, int first = 1) {
    const std::size_t n = rows.labels.size();
    require(rows.indptr.size() == n + 1 && rows.indptr[0] == 0, "a row pointer for every row");
    require(rows.lines.size() == n && rows.columns.size() == n, "a place for every row");
    require(rows.importances.empty() || rows.importances.size() == n, "importances for all rows or none");
    require(rows.tags.empty() || rows.tags.size() == n, "tags for all rows or none");
    require(rows.tag_ends.empty() || rows.tag_ends.size() == n, "texts as tags for all rows or none");
    require(static_cast<std::size_t>(rows.lines_read) <= size + 1, "no more lines than bytes");
    require(static_cast<std::int64_t>(rows.bad.size()) <= stop_after, "stops after so many bad rows");
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        require(rows.indptr[i] <= rows.indptr[i + 1], "row pointers never fall");
        require(i == 0 || rows.lines[i - 1] < rows.lines[i], "lines ascend");
        require(std::isfinite(rows.labels[i]) || std::isnan(rows.labels[i]), "labels are finite or missing");
        for (std::int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p) {
            require(rows.indices[p] >= 0 && rows.indices[p] < INT32_MAX, "indices in range");
            require(p == rows.indptr[i] || rows.indices[p - 1] < rows.indices[p], "indices ascend");
            require(std::isfinite(rows.values[p]), "finite values");
            widest = std::max<std::int64_t>(widest, std::int64_t{rows.indices[p]} + 1);
        }
    }
    require(widest == rows.width, "the width is the largest index + 1");
    for (double importance : rows.importances) require(std::isfinite(importance) && importance >= 0, "sound importances");
    for (std::int64_t tag : rows.tags) require(tag >= -1, "sound tags");
    for (const BadRow& bad : rows.bad) {
        require(bad.line >= first && bad.line < first + rows.lines_read && bad.column >= first, "places");
    }
}

// The names of tables: UTF-8, and each has the hash that the plain hash function gives it.
inline void check_names(const features::NewNames& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string_view name = names.name(i);
        require(first_invalid_utf8(name.data(), name.data() + name.size()) == name.data() + name.size(), "names are UTF-8");
        if (name.size() + 4 > features::LONGEST_NAME) continue;  // it may be shortened
        bool found = false;                                      // any ^ may be the end of the namespace
        for (std::size_t end = name.find('^'); !found && end != std::string_view::npos; end = name.find('^', end + 1)) {
            const std::uint32_t seed = features::murmur3(name.substr(0, end), 0);
            found = names.hashes[i] == features::murmur3(name.substr(end + 1), seed);
        }
        require(found, "a name has its hash");
    }
}

// A label as a number or as text, an importance and a tag of a row.
inline bool same_row(const ParsedRows& a, std::size_t i, const ParsedRows& b, std::size_t j) {
    const auto label = [](const ParsedRows& rows, std::size_t row) {
        const double number = rows.labels[row];
        if (std::isnan(number)) return std::pair(-1.0, std::string_view("none"));
        if (!rows.labels_are_texts) return std::pair(number, std::string_view());
        require(number >= 0 && number < static_cast<double>(rows.label_texts.size()), "a label has its text");
        return std::pair(0.0, std::string_view(rows.label_texts[static_cast<std::size_t>(number)]));
    };
    const auto importance = [](const ParsedRows& rows, std::size_t row) {
        return rows.importances.empty() ? 1 : rows.importances[row];
    };
    const auto tag = [](const ParsedRows& rows, std::size_t row) {
        const std::size_t begin = rows.tag_ends.empty() || row == 0 ? 0 : rows.tag_ends[row - 1];
        const std::string_view text = rows.tag_text;
        return std::pair(rows.tags.empty() ? -1 : rows.tags[row],
                         rows.tag_ends.empty() ? text.substr(0, 0) : text.substr(begin, rows.tag_ends[row] - begin));
    };
    return label(a, i) == label(b, j) && importance(a, i) == importance(b, j) && tag(a, i) == tag(b, j) &&
           a.indptr[i + 1] - a.indptr[i] == b.indptr[j + 1] - b.indptr[j];
}

// Rows of a text that was cut in two, against those of the whole.
inline void check_cut(const ParsedRows& whole, const ParsedRows& head, const ParsedRows& tail) {
    const std::size_t first = static_cast<std::size_t>(head.indptr.back()),
                      rest = static_cast<std::size_t>(tail.indptr.back());
    require(head.lines_read + tail.lines_read == whole.lines_read, "a cut between rows loses no line");
    require(head.labels.size() + tail.labels.size() == whole.labels.size(), "a cut between rows loses no row");
    require(head.bad.size() + tail.bad.size() == whole.bad.size(), "a cut between rows changes no verdict");
    require(first + rest == static_cast<std::size_t>(whole.indptr.back()), "a cut between rows loses no entry");
    require(first == 0 || std::memcmp(head.indices.get(), whole.indices.get(), first * sizeof(std::int32_t)) == 0,
            "a cut between rows changes no row before it");
    require(first == 0 || std::memcmp(head.values.get(), whole.values.get(), first * sizeof(float)) == 0,
            "a cut between rows changes no value before it");
    require(rest == 0 || std::memcmp(tail.indices.get(), whole.indices.get() + first, rest * sizeof(std::int32_t)) == 0,
            "a cut between rows changes no row after it");
    require(rest == 0 || std::memcmp(tail.values.get(), whole.values.get() + first, rest * sizeof(float)) == 0,
            "a cut between rows changes no value after it");
    const std::size_t rows = head.labels.size();
    for (std::size_t i = 0; i < whole.labels.size(); ++i) {
        require(i < rows ? same_row(whole, i, head, i) && whole.lines[i] == head.lines[i]
                         : same_row(whole, i, tail, i - rows) && whole.lines[i] == tail.lines[i - rows] + head.lines_read,
                "a cut between rows changes no label, importance, tag or place");
    }
    for (std::size_t i = 0; i < tail.bad.size(); ++i) {
        const BadRow &there = whole.bad[head.bad.size() + i], &here = tail.bad[i];
        require(here.line + head.lines_read == there.line && here.column == there.column && here.rule == there.rule &&
                    here.token == there.token,
                "a cut between rows changes no message");
    }
}

}  // namespace rarestream::fuzz
