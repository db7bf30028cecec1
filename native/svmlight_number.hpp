// Parsing of any decimal number to the nearest double, independent of the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>

#if defined(_LIBCPP_VERSION) && !defined(_WIN32)
#include <locale.h>
#include <stdlib.h>
#include <string>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace rarestream::svmlight {

// Digits [. digits] [e [+-] digits], which is all of the text, to the double nearest to them.
inline std::from_chars_result nearest_double(const char* begin, const char* end, double& value) {
#if defined(_LIBCPP_VERSION) && !defined(_WIN32)
    // The C++ library of macOS has from_chars for whole numbers only. Beyond the largest double, this gives infinity.
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    value = strtod_l(std::string(begin, end).c_str(), nullptr, plain);
    return {end, std::errc()};
#else
    return std::from_chars(begin, end, value);
#endif
}

enum class ParsedNumber { ok, malformed, not_finite, too_large };

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline bool spells(const char* s, const char* end, const char* word) {
    for (; s != end && *word; ++s, ++word) {
        if ((*s | 0x20) != *word) return false;
    }
    return s == end && !*word;
}

// Any decimal number: [+-] digits [. digits] [e [+-] digits]. Too small for a double is zero.
inline ParsedNumber parse_number(const char* s, const char* end, double& value) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool minus = s != end && *s == '-';
    if (s != end && (*s == '-' || *s == '+')) ++s;
    if (spells(s, end, "nan") || spells(s, end, "inf") || spells(s, end, "infinity")) return ParsedNumber::not_finite;
    const char* const begin = s;
    std::uint64_t mantissa = 0;
    std::int64_t significant = 0, exponent = 0, written = 0;
    bool dot = false, any = false;
    for (; s != end && (is_digit(*s) || (*s == '.' && !dot)); ++s) {
        if (*s == '.') {
            dot = true;
            continue;
        }
        any = true;
        exponent -= dot;
        if (significant || *s != '0') ++significant;
        if (significant <= 18) mantissa = mantissa * 10 + static_cast<unsigned>(*s - '0');
    }
    if (!any) return ParsedNumber::malformed;
    if (s != end && (*s == 'e' || *s == 'E')) {
        ++s;
        const bool down = s != end && *s == '-';
        if (s != end && (*s == '-' || *s == '+')) ++s;
        if (s == end) return ParsedNumber::malformed;
        for (; s != end && is_digit(*s); ++s) {
            if (written < 1000000000) written = written * 10 + (*s - '0');
        }
        exponent += down ? -written : written;
    }
    if (s != end) return ParsedNumber::malformed;
    if (significant == 0) {
        value = 0;
    } else if (significant <= 18 && mantissa <= (1ull << 53) && exponent >= -22 && exponent <= 22) {
        value = static_cast<double>(static_cast<std::int64_t>(mantissa));
        value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
    } else if (significant + exponent > 400) {
        return ParsedNumber::too_large;
    } else if (significant + exponent < -400) {
        value = 0;
    } else {
        const auto [stop, error] = nearest_double(begin, end, value);
        if (error == std::errc::result_out_of_range) {
            if (significant + exponent > 0) return ParsedNumber::too_large;
            value = 0;
        } else if (error != std::errc() || stop != end) {
            return ParsedNumber::malformed;
        } else if (!(value <= std::numeric_limits<double>::max())) {
            return ParsedNumber::too_large;
        }
    }
    value = minus ? -value : value;
    return ParsedNumber::ok;
}

}  // namespace rarestream::svmlight
