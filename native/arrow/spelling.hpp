// Dates, times and decimals of Arrow as text.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "features/cells.hpp"

namespace rarestream::arrow {

inline std::int64_t floor_div(std::int64_t value, std::int64_t by) { return value / by - (value % by < 0); }
inline std::int64_t floor_mod(std::int64_t value, std::int64_t by) { return value % by + (value % by < 0 ? by : 0); }

// A text of limited size on the stack.
class Spelling {
public:
    std::string_view text() const { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

    void put(char c) { *end_++ = c; }

    void put(std::string_view text) {
        std::memcpy(end_, text.data(), text.size());
        end_ += text.size();
    }

    // With zeros in front, up to `digits`.
    void number(std::int64_t value, int digits) {
        char reversed[24];
        int size = 0;
        const bool minus = value < 0;
        std::uint64_t rest = minus ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
        do {
            reversed[size++] = static_cast<char>('0' + rest % 10);
            rest /= 10;
        } while (rest);
        while (size < digits) reversed[size++] = '0';
        if (minus) put('-');
        while (size) put(reversed[--size]);
    }

private:
    char buffer_[512];
    char* end_ = buffer_;
};

// 2024-02-29
inline void spell_date(Spelling& out, std::int64_t days) {
    const features::Day day = features::day_of(days);
    out.number(day.year, 4);
    out.put('-');
    out.number(day.month, 2);
    out.put('-');
    out.number(day.day, 2);
}

// 13:05:59, and .25 or what else there is: as many digits as are needed.
inline void spell_time(Spelling& out, std::int64_t seconds, std::int64_t fraction, std::int64_t per_second) {
    out.number(seconds / 3600, 2);
    out.put(':');
    out.number(seconds / 60 % 60, 2);
    out.put(':');
    out.number(seconds % 60, 2);
    if (fraction == 0) return;
    int digits = per_second == 1000 ? 3 : per_second == 1'000'000 ? 6 : 9;
    while (fraction % 10 == 0) {
        fraction /= 10;
        --digits;
    }
    out.put('.');
    out.number(fraction, digits);
}

// The decimal with these little-endian bytes, in two's complement, and so many digits after the point.
inline void spell_decimal(Spelling& out, const std::uint8_t* bytes, int width, int scale) {
    std::uint32_t limbs[8] = {};
    const int n = width / 4;
    for (int i = 0; i < width; ++i) limbs[i / 4] |= static_cast<std::uint32_t>(bytes[i]) << (8 * (i % 4));
    const bool minus = bytes[width - 1] & 0x80;
    if (minus) {
        std::uint64_t carry = 1;
        for (int i = 0; i < n; ++i) {
            carry += ~limbs[i];
            limbs[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
    }
    char reversed[96];
    int size = 0;
    while (true) {
        std::uint64_t rest = 0;
        bool more = false;
        for (int i = n - 1; i >= 0; --i) {
            rest = rest << 32 | limbs[i];
            limbs[i] = static_cast<std::uint32_t>(rest / 10);
            rest %= 10;
            more |= limbs[i] != 0;
        }
        reversed[size++] = static_cast<char>('0' + rest);
        if (!more) break;
    }
    const bool zero = size == 1 && reversed[0] == '0';
    if (minus) out.put('-');
    const int whole = size - (scale > 0 ? scale : 0);
    if (whole <= 0) out.put('0');
    for (int i = 0; i < whole; ++i) out.put(reversed[size - 1 - i]);
    if (scale < 0 && !zero) {
        for (int i = scale; i < 0; ++i) out.put('0');
    }
    if (scale <= 0) return;
    out.put('.');
    for (int i = whole; i < 0; ++i) out.put('0');
    for (int i = whole > 0 ? whole : 0; i < size; ++i) out.put(reversed[size - 1 - i]);
}

inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
    std::uint32_t exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF, bits;
    if (exponent == 0x1F) {
        bits = sign | 0x7F800000u | mantissa << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else if (mantissa == 0) {
        bits = sign;
    } else {
        exponent = 113;
        while (!(mantissa & 0x400)) {
            mantissa <<= 1;
            --exponent;
        }
        bits = sign | exponent << 23 | (mantissa & 0x3FF) << 13;
    }
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace rarestream::arrow
