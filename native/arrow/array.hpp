// An Arrow array as this library reads it: its type parsed and its buffers checked, once for a batch.
//
// A producer promises that offsets and sizes fit its buffers, whose sizes the interface does not tell. All that can be
// checked is: formats, numbers of buffers and children, buffers that are missing, lengths of children.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "arrow/abi.hpp"

namespace rarestream::arrow {

enum class Type {
    null,
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
    text32,  // text and bytes alike: bytes are text if they are valid UTF-8; the number is the bits of an offset
    text64,
    text_view,
    fixed_bytes,
    decimal,
    date32,
    date64,
    time32,
    time64,
    timestamp,
    duration,
    list32,
    list64,
    list_view32,
    list_view64,
    fixed_list,
    structure,
    map,
    run_ends,
};

// Data that cannot be read, or that is not as the interface prescribes. The message continues "column 'a': ".
class ArrowError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

struct Format {
    Type type = Type::null;
    int width = 0;                // bytes of a value, or elements of a list of fixed size
    int scale = 0;                // of a decimal: digits after the point
    std::int64_t per_second = 1;  // units of a time
    bool zone = false;            // of a timestamp: its values are then in UTC
};

inline bool is_text(Type type) { return type >= Type::text32 && type <= Type::fixed_bytes; }
inline bool is_nested(Type type) { return type >= Type::list32 && type <= Type::map; }

inline bool parse_int(std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

// False: a type that this library does not read.
inline bool parse_format(std::string_view format, Format& found) {
    if (format.size() == 1) {
        switch (format[0]) {
            case 'n':
                found.type = Type::null;
                return true;
            case 'b':
                found.type = Type::boolean;
                return true;
            case 'c':
                found.type = Type::int8;
                return true;
            case 'C':
                found.type = Type::uint8;
                return true;
            case 's':
                found.type = Type::int16;
                return true;
            case 'S':
                found.type = Type::uint16;
                return true;
            case 'i':
                found.type = Type::int32;
                return true;
            case 'I':
                found.type = Type::uint32;
                return true;
            case 'l':
                found.type = Type::int64;
                return true;
            case 'L':
                found.type = Type::uint64;
                return true;
            case 'e':
                found.type = Type::float16;
                return true;
            case 'f':
                found.type = Type::float32;
                return true;
            case 'g':
                found.type = Type::float64;
                return true;
            case 'u':
            case 'z':
                found.type = Type::text32;
                return true;
            case 'U':
            case 'Z':
                found.type = Type::text64;
                return true;
            default:
                return false;
        }
    }
    const auto is = [&](std::string_view start) { return format.substr(0, start.size()) == start; };
    const auto time_unit = [&](char unit) {
        found.per_second = unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1'000'000 : unit == 'n' ? 1'000'000'000 : 0;
        return found.per_second != 0;
    };
    if (format == "vu" || format == "vz") {
        found.type = Type::text_view;
        return true;
    }
    if (is("w:")) {
        found.type = Type::fixed_bytes;
        return parse_int(format.substr(2), found.width) && found.width >= 0;
    }
    if (is("d:")) {
        found.type = Type::decimal;
        std::string_view rest = format.substr(2);
        const std::size_t comma = rest.find(',');
        if (comma == std::string_view::npos) return false;
        rest.remove_prefix(comma + 1);
        const std::size_t second = rest.find(',');
        int bits = 128;
        if (second != std::string_view::npos && !parse_int(rest.substr(second + 1), bits)) return false;
        found.width = bits / 8;
        const bool known = bits == 32 || bits == 64 || bits == 128 || bits == 256;
        return known && parse_int(rest.substr(0, second), found.scale) && found.scale >= -128 && found.scale <= 128;
    }
    if (format == "tdD" || format == "tdm") {
        found.type = format == "tdD" ? Type::date32 : Type::date64;
        return true;
    }
    if (is("tt") && format.size() == 3) {
        found.type = format[2] == 's' || format[2] == 'm' ? Type::time32 : Type::time64;
        return time_unit(format[2]);
    }
    if (is("ts") && format.size() >= 4 && format[3] == ':') {
        found.type = Type::timestamp;
        found.zone = format.size() > 4;
        return time_unit(format[2]);
    }
    if (is("tD") && format.size() == 3) {
        found.type = Type::duration;
        return time_unit(format[2]);
    }
    if (is("+w:")) {
        found.type = Type::fixed_list;
        return parse_int(format.substr(3), found.width) && found.width >= 0;
    }
    static constexpr struct {
        std::string_view format;
        Type type;
    } nested[] = {{"+l", Type::list32},    {"+L", Type::list64}, {"+vl", Type::list_view32}, {"+vL", Type::list_view64},
                  {"+s", Type::structure}, {"+m", Type::map},    {"+r", Type::run_ends}};
    for (const auto& known : nested) {
        if (format == known.format) {
            found.type = known.type;
            return true;
        }
    }
    return false;
}

inline std::string_view format_of(const ArrowSchema& schema) { return schema.format ? schema.format : ""; }
inline std::string_view name_of(const ArrowSchema& schema) { return schema.name ? schema.name : ""; }

// What a column holds, in a word or two, for messages; the Arrow format of a type that is not read.
inline std::string type_word(const ArrowSchema& schema) {
    Format format;
    if (schema.dictionary) return "categories";
    if (!parse_format(format_of(schema), format)) return std::string(format_of(schema));
    static constexpr const char* words[] = {
        "null",   "boolean", "int8",    "int16",   "int32",   "int64",  "uint8",     "uint16",
        "uint32", "uint64",  "float16", "float32", "float64", "text",   "text",      "text",
        "bytes",  "decimal", "date",    "date",    "time",    "time",   "timestamp", "duration",
        "list",   "list",    "list",    "list",    "list",    "struct", "map",       "run-end encoded"};
    const char c = format_of(schema)[0];
    if (c == 'z' || c == 'Z' || format_of(schema) == "vz") return "bytes";
    return words[static_cast<int>(format.type)];
}

struct Array {
    Format format;
    std::int64_t offset = 0, length = 0;
    const std::uint8_t* validity = nullptr;  // nullptr: no nulls
    const void* data = nullptr;              // values, offsets or views
    const void* extra = nullptr;             // the bytes of a text, the sizes of a list view
    const void* const* views = nullptr;      // the other buffers of text views
    std::int64_t n_views = 0;
    const char *checked_begin = nullptr, *checked_end = nullptr;  // bytes of its text that are valid UTF-8 as a whole
    std::string_view name;
    std::vector<Array> children;
    std::unique_ptr<Array> dictionary;

    template <class T>
    const T* items() const {
        return static_cast<const T*>(data);
    }

    bool is_null(std::int64_t at) const { return validity && !(validity[at >> 3] >> (at & 7) & 1); }
};

constexpr int MOST_LEVELS = 32;  // of nesting
constexpr std::int64_t LONGEST = std::int64_t{1} << 48;

inline void require(bool holds, const char* message) {
    if (!holds) throw ArrowError(message);
}

inline std::string unreadable(std::string_view format) {
    return "Arrow type '" + std::string(format) + "' cannot be a feature";
}

// The array of a schema and its data. `inside` a list, only values without parts are read.
inline Array checked_array(const ArrowSchema& schema, const ArrowArray& array, bool inside = false, int level = 0) {
    Array made;
    Format& format = made.format;
    if (level > MOST_LEVELS) throw ArrowError("nested too deep");
    if (!parse_format(format_of(schema), format)) throw ArrowError(unreadable(format_of(schema)));
    if (inside && is_nested(format.type)) {
        throw ArrowError(unreadable(format_of(schema)) + " inside a list or as the key of a map");
    }
    require(array.length >= 0 && array.offset >= 0 && array.length < LONGEST && array.offset < LONGEST,
            "the Arrow array has a negative or absurd length");
    made.name = name_of(schema);
    made.offset = array.offset;
    made.length = array.length;
    const bool empty = array.length == 0;
    const Type type = format.type;

    std::int64_t buffers = 2, children = 0;
    if (type == Type::null || type == Type::run_ends) buffers = 0;
    if (type == Type::structure || type == Type::fixed_list) buffers = 1;
    if (type == Type::text32 || type == Type::text64 || type == Type::text_view) buffers = 3;
    if (type == Type::list_view32 || type == Type::list_view64) buffers = 3;
    if (type >= Type::list32 && type <= Type::fixed_list) children = 1;
    if (type == Type::map) children = 1;
    if (type == Type::run_ends) children = 2;
    if (type == Type::structure) children = schema.n_children;
    require(array.n_buffers >= buffers && (buffers == 0 || array.buffers), "the Arrow array lacks buffers");
    require(schema.n_children == children && array.n_children == children, "the Arrow array lacks children");
    require(children == 0 || (schema.children && array.children), "the Arrow array lacks children");

    if (buffers > 0 && array.null_count != 0) made.validity = static_cast<const std::uint8_t*>(array.buffers[0]);
    if (buffers > 1) made.data = array.buffers[1];
    if (buffers > 1) require(empty || made.data, "the Arrow array lacks its data");
    if (type == Type::text32 || type == Type::text64) made.extra = array.buffers[2] ? array.buffers[2] : "";
    if (type == Type::list_view32 || type == Type::list_view64) {
        made.extra = array.buffers[2];
        require(empty || made.extra, "the Arrow array lacks its data");
    }
    if (type == Type::text_view) {
        made.views = array.buffers + 2;
        made.n_views = array.n_buffers - 3;  // the last buffer has the sizes of the others
    }

    if (schema.dictionary) {
        require(type >= Type::int8 && type <= Type::uint64, "the indices of the Arrow dictionary are not integers");
        require(array.dictionary, "the Arrow array lacks its dictionary");
        made.dictionary = std::make_unique<Array>(checked_array(*schema.dictionary, *array.dictionary, inside, level + 1));
        return made;
    }
    for (std::int64_t i = 0; i < children; ++i) {
        require(schema.children[i] && array.children[i], "the Arrow array lacks children");
        const bool in_list = inside || (type >= Type::list32 && type <= Type::fixed_list);
        if (type == Type::map) {
            const ArrowSchema& entries = *schema.children[0];
            const ArrowArray& items = *array.children[0];
            require(format_of(entries) == "+s" && entries.n_children == 2 && items.n_children == 2 && entries.children &&
                        items.children && entries.children[0] && items.children[0] && entries.children[1] &&
                        items.children[1],
                    "the entries of the Arrow map are not keys and values");
            Array pairs;
            pairs.offset = items.offset;
            pairs.length = items.length;
            require(items.offset >= 0 && items.length >= 0 && items.offset < LONGEST && items.length < LONGEST,
                    "the Arrow array has a negative or absurd length");
            pairs.children.push_back(checked_array(*entries.children[0], *items.children[0], true, level + 1));
            pairs.children.push_back(checked_array(*entries.children[1], *items.children[1], false, level + 1));
            for (const Array& child : pairs.children) {
                require(child.length >= pairs.offset + pairs.length, "a child of the Arrow array is too short");
            }
            made.children.push_back(std::move(pairs));
            continue;
        }
        made.children.push_back(checked_array(*schema.children[i], *array.children[i], in_list, level + 1));
    }
    const std::int64_t end = made.offset + made.length;
    if (type == Type::structure) {
        for (const Array& child : made.children) require(child.length >= end, "a child of the Arrow array is too short");
    }
    if (type == Type::fixed_list) {
        require(made.children[0].length / (format.width ? format.width : 1) >= end || format.width == 0,
                "a child of the Arrow array is too short");
    }
    if (type == Type::run_ends) {
        const Array& ends = made.children[0];
        const Type kind = ends.format.type;
        require(kind == Type::int16 || kind == Type::int32 || kind == Type::int64, "the Arrow run ends are not integers");
        require(!ends.validity && !ends.dictionary && (empty || ends.length > 0), "the Arrow run ends have nulls, or none");
        require(made.children[1].length >= ends.length, "a child of the Arrow array is too short");
    }
    return made;
}

}  // namespace rarestream::arrow
