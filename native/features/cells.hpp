// What the text of a cell is: a whole number, a decimal, a date, or text.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "svmlight_number.hpp"

namespace rarestream::features {

enum class CellKind { text, whole, decimal, not_finite, too_large };

struct NumberCell {
    CellKind kind = CellKind::text;
    double value = 0;
    std::string_view digits = {};  // of a whole number: its only spelling, the name of its category
};

constexpr int MOST_DIGITS = 18;                               // of a whole number; what is longer is text, or a decimal
constexpr std::int64_t TOO_LONG = 1'000'000'000'000'000'000;  // the smallest number with more
constexpr double LARGEST_WHOLE = 9007199254740992.0;          // 2^53: from here on, a double is not next to its neighbour

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// -?(0|[1-9][0-9]*)(\.0*)? is whole. 007 is text: what starts with zeros is an id.
inline NumberCell number_cell(std::string_view cell) {
    const char* const begin = cell.data();
    const char* const end = begin + cell.size();
    const char* const first = begin + (begin != end && *begin == '-');
    const char* at = first;
    std::int64_t sum = 0;
    while (at != end && is_digit(*at) && at - first < MOST_DIGITS) sum = sum * 10 + (*at++ - '0');
    const std::ptrdiff_t digits = at - first;
    if (digits > 0 && (digits == 1 || *first != '0')) {
        const char* rest = at;
        if (rest != end && *rest == '.') {
            ++rest;
            while (rest != end && *rest == '0') ++rest;
        }
        if (rest == end) {
            const bool minus = first != begin && sum != 0;
            const std::string_view spelled(minus ? begin : first, static_cast<std::size_t>(at - (minus ? begin : first)));
            return {CellKind::whole, static_cast<double>(minus ? -sum : sum), spelled};
        }
    }
    if (digits > 1 && *first == '0' && at == end) return {};
    NumberCell found;
    switch (svmlight::parse_number(begin, end, found.value)) {
        case svmlight::ParsedNumber::ok:
            found.kind = CellKind::decimal;
            break;
        case svmlight::ParsedNumber::not_finite:
            found.kind = CellKind::not_finite;
            break;
        case svmlight::ParsedNumber::too_large:
            found.kind = CellKind::too_large;
            break;
        case svmlight::ParsedNumber::malformed:
            break;
    }
    return found;
}

// The digits of a number: those of a whole one without a point, else the shortest that give the same double again.
class NumberText {
public:
    explicit NumberText(std::int64_t value) { end_ = std::to_chars(buffer_, buffer_ + sizeof buffer_, value).ptr; }
    explicit NumberText(std::uint64_t value) { end_ = std::to_chars(buffer_, buffer_ + sizeof buffer_, value).ptr; }

    explicit NumberText(double value) {
        const double size = std::fabs(value);
        char* const limit = buffer_ + sizeof buffer_;
        if (size < LARGEST_WHOLE && value == std::floor(value)) {
            end_ = std::to_chars(buffer_, limit, static_cast<std::int64_t>(value)).ptr;
        } else {
            const bool fixed = size >= 1e-4 && size < 1e16;
            end_ =
                std::to_chars(buffer_, limit, value, fixed ? std::chars_format::fixed : std::chars_format::scientific).ptr;
        }
    }

    std::string_view text() const { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

private:
    char buffer_[48];
    char* end_;
};

struct Date {
    int hour = -1;    // -1: a day without a time
    int weekday = 0;  // 0: Monday
    int month = 1;
};

// Days since 1 January 1970 of a day in the Gregorian calendar.
inline std::int64_t days_since_1970(std::int64_t year, int month, int day) {
    year -= month <= 2;
    const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
    const std::int64_t of_era = year - era * 400;
    const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct Day {
    std::int64_t year;
    int month, day;
};

// The day of a number of days since 1 January 1970.
inline Day day_of(std::int64_t days) {
    const std::int64_t shifted = days + 719468;
    const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    const std::int64_t of_era = shifted - era * 146097;
    const std::int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int month = static_cast<int>((5 * of_year + 2) / 153);
    const int day = static_cast<int>(of_year - (153 * month + 2) / 5 + 1);
    return {year + era * 400 + (month >= 10), month < 10 ? month + 3 : month - 9, day};
}

// The date of a number of seconds since 1970.
inline Date date_of(std::int64_t seconds, bool has_time) {
    std::int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        --days;
    }
    const std::int64_t weekday = ((days + 3) % 7 + 7) % 7;  // 1 January 1970 was a Thursday
    return {has_time ? static_cast<int>(rest / 3600) : -1, static_cast<int>(weekday), day_of(days).month};
}

// YYYY-MM-DD[(T| )HH:MM[:SS[.f]]][Z|+hh:mm]: seconds since 1970, whole ones and a fraction. A time with an offset is
// converted to UTC.
inline bool iso_time(std::string_view cell, std::int64_t& seconds, double& fraction, bool& has_time) {
    const char* at = cell.data();
    const char* const end = at + cell.size();
    const auto number = [&](int digits, int& value) {
        if (end - at < digits) return false;
        value = 0;
        for (int i = 0; i < digits; ++i, ++at) {
            if (!is_digit(*at)) return false;
            value = value * 10 + (*at - '0');
        }
        return true;
    };
    const auto sign = [&](char c) { return at != end && *at == c && (++at, true); };
    int year, month, day, hour = 0, minute = 0, second = 0;
    if (!number(4, year) || !sign('-') || !number(2, month) || !sign('-') || !number(2, day)) return false;
    static constexpr int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1]) return false;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month == 2 && day == 29 && !leap) return false;
    has_time = sign('T') || sign(' ');
    fraction = 0;
    std::int64_t offset = 0;
    if (has_time) {
        if (!number(2, hour) || !sign(':') || !number(2, minute) || hour > 23 || minute > 59) return false;
        if (sign(':')) {
            if (!number(2, second) || second > 60) return false;
            if (sign('.') || sign(',')) {
                if (at == end || !is_digit(*at)) return false;
                for (double unit = 0.1; at != end && is_digit(*at); ++at, unit /= 10) fraction += unit * (*at - '0');
            }
        }
        if (!sign('Z') && at != end && (*at == '+' || *at == '-')) {
            const int direction = *at++ == '+' ? 1 : -1;
            int hours, minutes = 0;
            if (!number(2, hours)) return false;
            if (at != end && (sign(':'), !number(2, minutes))) return false;
            offset = direction * (hours * 3600 + minutes * 60);
        }
    }
    if (at != end) return false;
    seconds = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    return true;
}

inline bool date_cell(std::string_view cell, Date& date) {
    std::int64_t seconds;
    double fraction;
    bool has_time;
    if (!iso_time(cell, seconds, fraction, has_time)) return false;
    date = date_of(seconds, has_time);
    return true;
}

}  // namespace rarestream::features
