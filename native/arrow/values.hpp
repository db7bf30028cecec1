// The values of an Arrow array, one call for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrow/array.hpp"
#include "arrow/spelling.hpp"
#include "features/cells.hpp"
#include "utf8.hpp"

namespace rarestream::arrow {

// A date or a time of a day, in UTC or in no zone.
struct Moment {
    std::int64_t seconds;  // since 1970
    std::int64_t fraction;
    std::int64_t per_second;
    bool has_time, zone;

    features::Date date() const { return features::date_of(seconds, has_time); }

    // As Python's isoformat: 2024-02-29T13:05:59+00:00.
    void spell(Spelling& out) const {
        spell_date(out, floor_div(seconds, 86400));
        if (!has_time) return;
        out.put('T');
        spell_time(out, floor_mod(seconds, 86400), fraction, per_second);
        if (zone) out.put("+00:00");
    }
};

template <class Offset>
std::string_view text_between(const Array& array, std::int64_t at) {
    const Offset* const offsets = array.items<Offset>() + at;
    require(offsets[0] >= 0 && offsets[1] >= offsets[0], "the offsets of the Arrow array do not ascend");
    return {static_cast<const char*>(array.extra) + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0])};
}

inline std::string_view text_of_view(const Array& array, std::int64_t at) {
    const char* const view = static_cast<const char*>(array.data) + 16 * at;
    std::int32_t parts[4];  // size; then the text itself, or its first four bytes, the number of a buffer, and an offset
    std::memcpy(parts, view, sizeof parts);
    require(parts[0] >= 0, "a text of the Arrow array has a negative size");
    if (parts[0] <= 12) return {view + 4, static_cast<std::size_t>(parts[0])};
    const bool there = parts[2] >= 0 && parts[2] < array.n_views && parts[3] >= 0 && array.views[parts[2]];
    require(there, "a text of the Arrow array is in a buffer that is not there");
    return {static_cast<const char*>(array.views[parts[2]]) + parts[3], static_cast<std::size_t>(parts[0])};
}

inline std::string_view text_at(const Array& array, std::int64_t at) {
    switch (array.format.type) {
        case Type::text32:
            return text_between<std::int32_t>(array, at);
        case Type::text64:
            return text_between<std::int64_t>(array, at);
        case Type::text_view:
            return text_of_view(array, at);
        default: {
            const std::size_t width = static_cast<std::size_t>(array.format.width);
            return {array.items<char>() + static_cast<std::size_t>(at) * width, width};
        }
    }
}

inline bool is_utf8(std::string_view text) {
    const char* const end = text.data() + text.size();
    return first_invalid_utf8(text.data(), end) == end;
}

// Text within bytes that were checked as a whole is valid if it neither starts nor ends in the middle of a character.
inline bool is_valid(const Array& array, std::string_view text) {
    const char *const begin = text.data(), *const end = begin + text.size();
    if (begin < array.checked_begin || end > array.checked_end) return is_utf8(text);
    const auto inside = [&](const char* at) {
        return at != array.checked_end && (static_cast<unsigned char>(*at) & 0xC0) == 0x80;
    };
    return text.empty() || (!inside(begin) && !inside(end));
}

// Checks the text of the rows from `start` to `stop` at once. What is not valid may be the bytes of a null: it is then
// checked text by text.
inline void check_text(Array& array, std::int64_t start, std::int64_t stop) {
    if (start >= stop) return;
    const auto check = [&](const auto* offsets) {
        const auto begin = offsets[array.offset + start], end = offsets[array.offset + stop];
        if (begin < 0 || end < begin) return;
        const char* const text = static_cast<const char*>(array.extra);
        if (!is_utf8({text + begin, static_cast<std::size_t>(end - begin)})) return;
        array.checked_begin = text + begin;
        array.checked_end = text + end;
    };
    if (array.format.type == Type::text32) check(array.items<std::int32_t>());
    if (array.format.type == Type::text64) check(array.items<std::int64_t>());
}

inline std::int64_t index_at(const Array& array, std::int64_t at) {
    switch (array.format.type) {
        case Type::int8:
            return array.items<std::int8_t>()[at];
        case Type::uint8:
            return array.items<std::uint8_t>()[at];
        case Type::int16:
            return array.items<std::int16_t>()[at];
        case Type::uint16:
            return array.items<std::uint16_t>()[at];
        case Type::int32:
            return array.items<std::int32_t>()[at];
        case Type::uint32:
            return array.items<std::uint32_t>()[at];
        default:
            return array.items<std::int64_t>()[at];
    }
}

inline std::int64_t dictionary_index(const Array& array, std::int64_t at) {
    const std::int64_t index = index_at(array, at);
    require(index >= 0 && index < array.dictionary->length, "an index of the Arrow dictionary is out of range");
    return index;
}

template <class End>
std::int64_t run_of(const Array& array, std::int64_t at) {
    const Array& ends = array.children[0];
    const End* const first = ends.items<End>() + ends.offset;
    const End* const found = std::upper_bound(
        first, first + ends.length, at, [](std::int64_t row, End end) { return row < static_cast<std::int64_t>(end); });
    require(found != first + ends.length, "the Arrow runs end before the array does");
    return found - first;
}

struct Slice {
    std::int64_t begin, size;
};

template <class Offset>
Slice slice_between(const Array& array, std::int64_t at) {
    const Offset* const offsets = array.items<Offset>() + at;
    require(offsets[0] >= 0 && offsets[1] >= offsets[0], "the offsets of the Arrow array do not ascend");
    return {offsets[0], offsets[1] - offsets[0]};
}

template <class Offset>
Slice slice_of_view(const Array& array, std::int64_t at) {
    return {array.items<Offset>()[at], static_cast<const Offset*>(array.extra)[at]};
}

inline Slice slice_at(const Array& array, std::int64_t at) {
    Slice found{};
    switch (array.format.type) {
        case Type::list64:
            found = slice_between<std::int64_t>(array, at);
            break;
        case Type::list_view32:
            found = slice_of_view<std::int32_t>(array, at);
            break;
        case Type::list_view64:
            found = slice_of_view<std::int64_t>(array, at);
            break;
        case Type::fixed_list:
            found = {at * array.format.width, array.format.width};
            break;
        default:  // list32 and map
            found = slice_between<std::int32_t>(array, at);
    }
    const bool fits = found.begin >= 0 && found.size >= 0 && found.begin <= array.children[0].length &&
                      found.size <= array.children[0].length - found.begin;
    require(fits, "a list of the Arrow array is out of range");
    return found;
}

// Calls the method of `out` for the value `i`; none for a null.
template <class Out>
void visit(const Array& array, std::int64_t i, Out& out) {
    const std::int64_t at = array.offset + i;
    if (array.is_null(at)) return;
    if (array.dictionary) return visit(*array.dictionary, dictionary_index(array, at), out);
    const Format& format = array.format;
    const auto moment = [&](std::int64_t units, bool has_time) {
        const std::int64_t seconds = floor_div(units, format.per_second), fraction = floor_mod(units, format.per_second);
        out.moment({seconds, fraction, format.per_second, has_time, format.zone});
    };
    const auto time = [&](std::int64_t units) {
        Spelling spelling;
        const std::int64_t seconds = floor_div(units, format.per_second);
        require(seconds >= 0 && seconds <= 86400, "a time of the Arrow array is not within a day");
        spell_time(spelling, seconds, units - seconds * format.per_second, format.per_second);
        out.made_text(spelling.text());
    };
    switch (format.type) {
        case Type::null:
            return;
        case Type::boolean:
            return out.boolean(array.items<std::uint8_t>()[at >> 3] >> (at & 7) & 1);
        case Type::int8:
        case Type::int16:
        case Type::int32:
        case Type::int64:
        case Type::uint8:
        case Type::uint16:
        case Type::uint32:
            return out.whole(index_at(array, at));
        case Type::uint64:
            return out.whole(array.items<std::uint64_t>()[at]);
        case Type::float16:
            return out.number(half_to_float(array.items<std::uint16_t>()[at]));
        case Type::float32:
            return out.number(array.items<float>()[at]);
        case Type::float64:
            return out.number(array.items<double>()[at]);
        case Type::text32:
        case Type::text64:
        case Type::text_view:
        case Type::fixed_bytes: {
            const std::string_view text = text_at(array, at);
            return is_valid(array, text) ? out.text(text) : out.not_utf8(text);
        }
        case Type::decimal: {
            Spelling spelling;
            spell_decimal(spelling, array.items<std::uint8_t>() + at * format.width, format.width, format.scale);
            return out.decimal(spelling.text());
        }
        case Type::date32:
            return moment(std::int64_t{array.items<std::int32_t>()[at]} * 86400, false);
        case Type::date64:
            return moment(floor_div(array.items<std::int64_t>()[at], 86'400'000) * 86400, false);
        case Type::time32:
            return time(array.items<std::int32_t>()[at]);
        case Type::time64:
            return time(array.items<std::int64_t>()[at]);
        case Type::timestamp:
            return moment(array.items<std::int64_t>()[at], true);
        case Type::duration:
            return out.number(static_cast<double>(array.items<std::int64_t>()[at]) /
                              static_cast<double>(format.per_second));
        case Type::list32:
        case Type::list64:
        case Type::list_view32:
        case Type::list_view64:
        case Type::fixed_list:
            return out.list(array.children[0], slice_at(array, at));
        case Type::structure:
            return out.structure(array, at);
        case Type::map:
            return out.map(array.children[0], slice_at(array, at));
        case Type::run_ends: {
            const Type kind = array.children[0].format.type;
            const std::int64_t run = kind == Type::int16   ? run_of<std::int16_t>(array, at)
                                     : kind == Type::int32 ? run_of<std::int32_t>(array, at)
                                                           : run_of<std::int64_t>(array, at);
            return visit(array.children[1], run, out);
        }
    }
}

}  // namespace rarestream::arrow
