// Pairs of field and text, as entries of a Redis stream have them, as JSON objects.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "features/cells.hpp"

namespace rarestream::field_pairs {

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-][0-9]{1,2})? with up to 18 digits before the exponent: a JSON number that a double
// holds. An exponent has a sign where programs write one; 12e45 without is more likely the start of a hash.
inline bool is_number(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    if (at != end && *at == '-') ++at;
    const char* const whole = at;
    while (at != end && features::is_digit(*at)) ++at;
    std::ptrdiff_t digits = at - whole;
    if (digits == 0 || (digits > 1 && *whole == '0')) return false;
    if (at != end && *at == '.') {
        const char* const decimals = ++at;
        while (at != end && features::is_digit(*at)) ++at;
        if (at == decimals) return false;
        digits += at - decimals;
    }
    if (digits > features::MOST_DIGITS) return false;
    if (at == end) return true;
    if ((*at != 'e' && *at != 'E') || end - at < 3 || end - at > 4 || (at[1] != '+' && at[1] != '-')) return false;
    for (at += 2; at != end; ++at) {
        if (!features::is_digit(*at)) return false;
    }
    return true;
}

// Bytes that are not UTF-8 stay as they are: the parser of JSON refuses the row and says where.
inline void append_string(std::string& out, std::string_view text) {
    constexpr const char* HEX = "0123456789abcdef";
    out += '"';
    std::size_t copied = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned char c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        out.append(text, copied, i - copied);
        copied = i + 1;
        out += '\\';
        if (c >= 0x20) {
            out += static_cast<char>(c);
        } else {
            out += "u00";
            out += HEX[c >> 4];
            out += HEX[c & 15];
        }
    }
    out.append(text, copied, text.size() - copied);
    out += '"';
}

inline void append_value(std::string& out, std::string_view text) {
    if (is_number(text)) {
        out += text;
    } else {
        append_string(out, text);
    }
}

}  // namespace rarestream::field_pairs
