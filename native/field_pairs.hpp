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

// JSON text that grows as it is written.
class Writer {
public:
    explicit Writer(std::size_t expected) : text_(expected, '\0') {}

    // Bytes that are not UTF-8 stay as they are: the parser of JSON refuses the row and says where.
    void string(std::string_view text) {
        constexpr const char* HEX = "0123456789abcdef";
        char* out = space_for(6 * text.size() + 2);
        *out++ = '"';
        for (const char c : text) {
            if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') {
                *out++ = c;
                continue;
            }
            *out++ = '\\';
            if (static_cast<unsigned char>(c) >= 0x20) {
                *out++ = c;
                continue;
            }
            *out++ = 'u';
            *out++ = '0';
            *out++ = '0';
            *out++ = HEX[c >> 4];
            *out++ = HEX[c & 15];
        }
        *out++ = '"';
        written_ = static_cast<std::size_t>(out - text_.data());
    }

    void value(std::string_view text) {
        if (is_number(text)) {
            raw(text);
        } else {
            string(text);
        }
    }

    void raw(std::string_view text) {
        std::memcpy(space_for(text.size()), text.data(), text.size());
        written_ += text.size();
    }

    std::string_view written() const { return {text_.data(), written_}; }

private:
    char* space_for(std::size_t size) {
        if (text_.size() - written_ < size) text_.resize(2 * text_.size() + size);
        return text_.data() + written_;
    }

    std::string text_;
    std::size_t written_ = 0;
};

}  // namespace rarestream::field_pairs
