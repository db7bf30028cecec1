// Numbers as the shortest text that gives the same number again.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#if defined(__APPLE__)
#include <xlocale.h>
#endif

namespace rarestream {

constexpr std::size_t LONGEST_NUMBER = 32;  // bytes that a number may take

inline char* put_whole(char* to, std::uint64_t value) {
    static constexpr char pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    char reversed[20];
    char* at = reversed + sizeof reversed;
    while (value >= 100) {
        at -= 2;
        std::memcpy(at, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        std::memcpy(at, pairs + 2 * value, 2);
    } else {
        *--at = static_cast<char>('0' + value);
    }
    const std::size_t size = static_cast<std::size_t>(reversed + sizeof reversed - at);
    std::memcpy(to, at, size);
    return to + size;
}

// Of a finite float or double.
template <class Number>
char* put_number(char* to, Number value) {
    if (value >= 0 && value < 10000000 && value == static_cast<Number>(static_cast<std::int32_t>(value))) {
        if (!(value == 0 && std::signbit(value))) return put_whole(to, static_cast<std::uint64_t>(value));
    }
#if defined(__APPLE__)
    // The C++ library of older systems cannot write fractions.
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    const bool single = std::is_same_v<Number, float>;
    for (int digits = 1;; ++digits) {
        const int size = snprintf_l(to, LONGEST_NUMBER, plain, "%.*g", digits, static_cast<double>(value));
        const double again = strtod_l(to, nullptr, plain);
        if (static_cast<Number>(again) == value || digits == (single ? 9 : 17)) return to + size;
    }
#else
    if constexpr (std::is_same_v<Number, float>) {
        // Readers round to double and then to float. Of all floats, this is the only one whose shortest text is so close to
        // the middle of two that the first rounding leads to the wrong one; a text with more digits is not.
        if (std::fabs(value) == 7.038531e-26f)
            return std::to_chars(to, to + LONGEST_NUMBER, value, std::chars_format::scientific, 8).ptr;
    }
    return std::to_chars(to, to + LONGEST_NUMBER, value).ptr;
#endif
}

}  // namespace rarestream
