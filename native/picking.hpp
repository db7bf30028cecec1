// The rows of a table as they are written, and a few of their cells: a key, a time and a label. For programs that pass rows
// on, such as joins, and need no features of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "features/cells.hpp"
#include "features/table.hpp"
#include "parsed_rows.hpp"

namespace rarestream::picking {

enum class Rule : int {  // beyond those of the formats; the messages are in readers/picking.py
    no_key = 40,
    no_time = 41,
    bad_time = 42,
    no_label = 43,
    taken = 44,   // a row that has a column of the name that is to be added
    nested = 45,  // a list or an object where one value is expected
};

enum Role : int { KEY, TIME, LABEL, TAKEN, ROLES };

// From this size on, a number since 1970 counts milliseconds: in seconds it would be the year 5138, and in milliseconds it
// is in 1973. Likewise for microseconds and nanoseconds.
constexpr double MILLISECONDS = 1e11, MICROSECONDS = 1e14, NANOSECONDS = 1e17;

// Seconds since 1970 of a date or a number; NaN if the text is neither.
inline double seconds_of(std::string_view text) {
    std::int64_t whole;
    double fraction;
    bool has_time;
    if (features::iso_time(text, whole, fraction, has_time)) return static_cast<double>(whole) + fraction;
    const features::NumberCell cell = features::number_cell(text);
    if (cell.kind != features::CellKind::whole && cell.kind != features::CellKind::decimal)
        return std::numeric_limits<double>::quiet_NaN();
    const double size = std::fabs(cell.value);
    if (size >= NANOSECONDS) return cell.value / 1e9;
    if (size >= MICROSECONDS) return cell.value / 1e6;
    if (size >= MILLISECONDS) return cell.value / 1e3;
    return cell.value;
}

// Texts one after the other.
struct Texts {
    std::string bytes;
    std::vector<std::size_t> ends;

    void add(std::string_view text) {
        bytes.append(text);
        ends.push_back(bytes.size());
    }
};

struct Options {
    bool rows = true;     // whether the rows are wanted
    bool label = false;   // whether each row has to have a label
    bool braces = false;  // whether rows are JSON objects: their last brace is left out, so that a key can be added
};

// A sink of the CSV and JSON parsers; the columns that they call it with are Roles.
class Picker {
public:
    Picker(const Options& options, std::vector<std::string> names, ParsedRows& parsed)
        : options_(options), names_(std::move(names)), parsed_(parsed) {
        names_.resize(ROLES);
    }

    Texts rows, keys, labels;
    std::vector<double> times;
    std::vector<std::int64_t> lines;

    static constexpr bool KEEPS_ROWS = true;

    features::Arena& arena() { return arena_; }
    bool open() const { return false; }
    void reserve(std::size_t) {}

    int column(std::string_view name) const {
        for (int role = 0; role < ROLES; ++role) {
            if (!names_[static_cast<std::size_t>(role)].empty() && name == names_[static_cast<std::size_t>(role)])
                return role;
        }
        return -1;
    }

    int other_column(std::string_view) const { return -1; }
    bool ignores(int) const { return false; }

    void begin_row() {
        arena_.clear();
        for (bool& found : found_) found = false;
        fault_ = 0;
    }

    void text(int role, std::string_view cell) {
        found_[role] = !cell.empty();
        cells_[role] = cell;
    }

    void texts(const int* columns, const std::string_view* cells, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (columns[i] >= 0) text(columns[i], cells[i]);
        }
    }

    void string(int role, std::string_view cell) { text(role, cell); }
    void number_text(int role, std::string_view cell) { text(role, cell); }
    void number(int role, double value) { text(role, arena_.copy(features::NumberText(value).text())); }
    void boolean(int role, bool value) { text(role, value ? "true" : "false"); }
    void begin_list(int role) { nested(role); }
    void begin_map(int role) { nested(role); }
    void element(int, std::string_view) {}
    void entry(std::string_view, std::uint32_t, std::string_view, double) {}
    void entry(std::string_view, std::uint32_t, std::string_view, std::string_view) {}
    void fail(features::TableRule, int role, std::string_view token) { text(role, token); }  // a number beyond a double
    void fail(features::TableRule, std::string_view, std::string_view) {}
    bool failed() const { return false; }
    const char* failed_at() const { return nullptr; }

    // The text of the current row, its line end included.
    void row(const char* begin, const char* end) {
        while (end != begin && (end[-1] == '\n' || end[-1] == '\r' || (options_.braces && end[-1] == ' ') ||
                                (options_.braces && end[-1] == '\t')))
            --end;
        if (options_.braces && end != begin) --end;
        row_ = {begin, static_cast<std::size_t>(end - begin)};
    }

    bool end_row(std::int64_t line, std::int32_t, std::int64_t) {
        double time = 0;
        if (!fault_ && found_[TAKEN]) break_rule(Rule::taken, TAKEN);
        if (!fault_ && !found_[KEY]) break_rule(Rule::no_key, KEY);
        if (!fault_ && !found_[TIME]) break_rule(Rule::no_time, TIME);
        if (!fault_ && options_.label && !found_[LABEL]) break_rule(Rule::no_label, LABEL);
        if (!fault_) {
            time = seconds_of(cells_[TIME]);
            if (std::isnan(time)) break_rule(Rule::bad_time, TIME);
        }
        if (fault_) {
            const std::string_view shown = found_[broken_] ? cells_[broken_].substr(0, LONGEST_TOKEN) : std::string_view();
            parsed_.bad.push_back({line, 1, fault_, std::string(shown), names_[static_cast<std::size_t>(broken_)]});
            return false;
        }
        if (options_.rows) rows.add(row_);
        keys.add(cells_[KEY]);
        if (options_.label) labels.add(cells_[LABEL]);
        times.push_back(time);
        lines.push_back(line);
        return true;
    }

    void drop_row() {}

private:
    void nested(int role) {
        found_[role] = true;
        cells_[role] = {};
        break_rule(Rule::nested, role);
    }

    void break_rule(Rule rule, int role) {
        if (fault_) return;
        fault_ = static_cast<int>(rule);
        broken_ = role;
    }

    Options options_;
    std::vector<std::string> names_;
    ParsedRows& parsed_;
    features::Arena arena_;
    std::string_view cells_[ROLES], row_;
    bool found_[ROLES] = {};
    int fault_ = 0, broken_ = 0;
};

}  // namespace rarestream::picking
