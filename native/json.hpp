// JSON lines to rows of a table: one object per line, as RFC 8259 has it; its keys are the columns. Blank lines are
// skipped. Stricter than the RFC asks for: a key comes once in an object, escapes of half a character are refused.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "features/table.hpp"
#include "json_keys.hpp"
#include "parsed_rows.hpp"
#include "svmlight_digits.hpp"
#include "utf8.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rarestream::json {

enum class Rule : int {  // beyond those of features::TableRule; the messages are in readers/formats/jsonl.py
    object = 20,         // a line that is not an object
    key = 21,
    colon = 22,
    value = 23,
    number = 24,
    comma = 25,
    list_comma = 26,
    incomplete = 27,  // the line ends within the object
    unclosed = 28,    // the line ends within a string
    control = 29,
    escape = 30,
    surrogate = 31,
    utf8 = 32,
    duplicate = 33,
    deep = 34,
    trailing = 35,  // text after the object
};

constexpr int DEEPEST = 64;  // objects and lists inside each other

struct Options {
    std::int64_t stop_after = 1;  // bad rows; the rest of the chunk is left unread
    bool check_first = false;     // whether the sink sees nothing of a row that is not JSON
};

// The first quote, backslash or control character. There is one: the line end. Reads up to 16 bytes beyond it.
inline const char* string_stop(const char* at) {
#if defined(__x86_64__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    for (;; at += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                           _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
        const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(found));
        if (mask) return at + __builtin_ctz(mask);
    }
#else
    using svmlight::every_byte;
    const auto zeros = [](std::uint64_t x) { return (x - every_byte(1)) & ~x; };
    for (;; at += 8) {
        const std::uint64_t bytes = svmlight::load_eight(at);
        const std::uint64_t control = (bytes - every_byte(0x20)) & ~bytes;
        // Exact up to and including the first of each.
        const std::uint64_t mask =
            (zeros(bytes ^ every_byte('"')) | zeros(bytes ^ every_byte('\\')) | control) & every_byte(0x80);
        if (mask) return at + (__builtin_ctzll(mask) >> 3);
    }
#endif
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What people take for a number or a word, to show the whole of it.
inline bool is_word(char c) {
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' || c == '-' || c == '.' || c == '_';
}

// The end of -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? that starts here; nullptr: it is something else.
inline const char* number_end(const char* at, bool& whole) {
    at += *at == '-';
    bool valid = is_digit(*at);
    if (*at == '0') {
        ++at;
    } else {
        while (is_digit(*at)) ++at;
    }
    whole = true;
    if (*at == '.') {
        whole = false;
        valid &= is_digit(*++at);
        while (is_digit(*at)) ++at;
    }
    if (*at == 'e' || *at == 'E') {
        whole = false;
        ++at;
        if (*at == '+' || *at == '-') ++at;
        valid &= is_digit(*at);
        while (is_digit(*at)) ++at;
    }
    return valid ? at : nullptr;
}

// The keys of the objects of a row: finds one that comes twice in an object.
class KeySet {
public:
    void clear() {
        size_ = 0;
        oldest_ = objects_ + 1;
    }

    std::uint64_t new_object() { return ++objects_; }

    // Whether it was not there. The view must stay valid until `clear`.
    bool insert(std::uint64_t object, std::string_view key) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        const std::uint32_t hash = features::murmur3(key, static_cast<std::uint32_t>(object));
        for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
            Slot& slot = slots_[i];
            if (slot.object < oldest_) {
                slot = {object, hash, key};
                ++size_;
                return true;
            }
            if (slot.object == object && slot.hash == hash && slot.key == key) return false;
        }
    }

private:
    struct Slot {
        std::uint64_t object = 0;
        std::uint32_t hash = 0;
        std::string_view key = {};
    };

    void grow() {
        auto before = std::move(slots_);
        slots_.assign(std::max<std::size_t>(64, 2 * before.size()), {});
        for (const Slot& slot : before) {
            if (slot.object < oldest_) continue;
            std::size_t i = slot.hash & (slots_.size() - 1);
            while (slots_[i].object >= oldest_) i = (i + 1) & (slots_.size() - 1);
            slots_[i] = slot;
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
    std::uint64_t objects_ = 0, oldest_ = 1;
};

// Calls the methods of `Sink`, a TableEncoder, a TableSurvey or a Picker. Within a line, methods take the place where to
// read, and return where they stopped, or nullptr after `break_rule`.
template <class Sink>
class Parser {
public:
    // `known` are keys that were seen before, in rows with the same columns; without it, all are new.
    Parser(Sink& sink, const Options& options, ParsedRows& rows, KnownKeys* known = nullptr)
        : sink_(sink), options_(options), rows_(rows), known_(known ? *known : own_.emplace()) {
        known_.begin_text();
    }

    // The text consists of whole lines; the last line end may be missing.
    void parse(const char* text, std::size_t size) {
        const char* const end = text + size;
        suspicious_ = first_invalid_utf8(text, end) != end;
        sink_.reserve(size / 10 + 64);
        for (const char* at = text; at != end;) {
            const char* stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            const char* const next = stop ? stop + 1 : end;
            ++rows_.lines_read;
            row_ = at;
            end_ = stop ? stop : end;
            if (!stop || end - stop < PADDING) copy_line();
            at = next;
            const char* const first = space(row_);
            if (first == end_) continue;  // a blank line
            whole_row(first);
            if (static_cast<std::int64_t>(rows_.bad.size()) >= options_.stop_after) return;
        }
    }

private:
    static constexpr std::ptrdiff_t PADDING = 64;  // bytes after a line end that may be read

    // The last lines are parsed where bytes after them may be read, and where each has a line end.
    void copy_line() {
        const std::size_t size = static_cast<std::size_t>(end_ - row_);
        last_.assign(size + PADDING, '\0');
        std::memcpy(last_.data(), row_, size);
        last_[size] = '\n';
        row_ = last_.data();
        end_ = row_ + size;
    }

    void whole_row(const char* at) {
        fault_ = 0;
        ++known_.row;
        keys_.clear();
        sink_.begin_row();
        const char* const invalid = suspicious_ ? first_invalid_utf8(row_, end_) : end_;
        if (invalid != end_) {
            break_rule(Rule::utf8, invalid, 4);
        } else if (*at != '{') {
            break_rule(Rule::object, at, shown_word(at));
        } else {
            const char* after = options_.check_first ? skipped(at, 1) : at;
            if (after) after = columns(at + 1);
            if (after && (after = space(after)) != end_) break_rule(Rule::trailing, after, shown_word(after));
        }
        if (fault_) {
            sink_.drop_row();
            const std::size_t shown = static_cast<std::size_t>(std::min<std::ptrdiff_t>(shown_, end_ - place_));
            rows_.bad.push_back({rows_.lines_read, place_ - row_ + 1, fault_, std::string(place_, shown)});
            return;
        }
        if constexpr (Sink::KEEPS_ROWS) sink_.row(row_, end_);
        std::int64_t column = 1;
        if (sink_.failed()) {
            const char* const place = sink_.failed_at();
            if (place >= row_ && place < end_) column = place - row_ + 1;
        }
        sink_.end_row(rows_.lines_read, 1, column);
    }

    // -- faults

    const char* break_rule(Rule rule, const char* place, std::ptrdiff_t shown) {
        if (fault_) return nullptr;
        const bool structure = rule >= Rule::key && rule <= Rule::list_comma;
        fault_ = static_cast<int>(structure && place == end_ ? Rule::incomplete : rule);
        place_ = place;
        shown_ = std::min<std::ptrdiff_t>(shown, LONGEST_TOKEN);
        return nullptr;
    }

    // Bytes to show of what should not be there: a word, or one character.
    std::ptrdiff_t shown_word(const char* at) const {
        const char* stop = at;
        while (stop != end_ && is_word(*stop)) ++stop;
        if (stop != at) return stop - at;
        for (++stop; stop < end_ && (static_cast<unsigned char>(*stop) & 0xC0) == 0x80;) ++stop;
        return stop - at;
    }

    // -- values

    static const char* space(const char* at) {
        while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
        return at;
    }

    // The text of a string whose opening quote is just before `at`.
    const char* string(const char* at, std::string_view& text) {
        const char* const stop = string_stop(at);
        if (*stop != '"') return escaped(at, stop, text);
        text = {at, static_cast<std::size_t>(stop - at)};
        return stop + 1;
    }

    const char* escaped(const char* begin, const char* stop, std::string_view& text) {
        while (*stop != '"') {
            if (*stop == '\\' && stop + 1 != end_) {
                stop = string_stop(stop + 2);
            } else if (*stop != '\\' && stop != end_) {
                return break_rule(Rule::control, stop, 1);
            } else {
                return break_rule(Rule::unclosed, begin - 1, 16);
            }
        }
        char* const unescaped = sink_.arena().allocate(static_cast<std::size_t>(stop - begin));
        char* to = unescaped;
        for (const char* at = begin; at != stop;) {
            if (*at != '\\') {
                *to++ = *at++;
                continue;
            }
            std::uint32_t code = 0;
            int length = 2;
            switch (at[1]) {
                case '"':
                case '\\':
                case '/':
                    code = static_cast<unsigned char>(at[1]);
                    break;
                case 'b':
                    code = '\b';
                    break;
                case 'f':
                    code = '\f';
                    break;
                case 'n':
                    code = '\n';
                    break;
                case 'r':
                    code = '\r';
                    break;
                case 't':
                    code = '\t';
                    break;
                case 'u':
                    length = unicode(at, stop, code);
                    break;
                default:
                    length = 0;
            }
            if (length == 0) return break_rule(Rule::escape, at, std::min<std::ptrdiff_t>(at[1] == 'u' ? 6 : 2, stop - at));
            if (code >= 0xD800 && code < 0xE000) return break_rule(Rule::surrogate, at, length);
            at += length;
            to = encoded(code, to);
        }
        text = {unescaped, static_cast<std::size_t>(to - unescaped)};
        return stop + 1;
    }

    // The character of \uXXXX, or of two of them that are one; its length, 0 if it is malformed.
    static int unicode(const char* at, const char* stop, std::uint32_t& code) {
        if (!hexadecimal(at, stop, code)) return 0;
        std::uint32_t low;
        if (code >= 0xD800 && code < 0xDC00 && hexadecimal(at + 6, stop, low) && low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            return 12;
        }
        return 6;
    }

    static bool hexadecimal(const char* at, const char* stop, std::uint32_t& code) {
        if (stop - at < 6 || at[0] != '\\' || at[1] != 'u') return false;
        code = 0;
        for (int i = 2; i < 6; ++i) {
            const char letter = static_cast<char>(at[i] | 0x20);
            if (!is_digit(at[i]) && !(letter >= 'a' && letter <= 'f')) return false;
            code = code * 16 + static_cast<std::uint32_t>(is_digit(at[i]) ? at[i] - '0' : letter - 'a' + 10);
        }
        return true;
    }

    static char* encoded(std::uint32_t code, char* to) {
        const auto byte = [&to](std::uint32_t value) { *to++ = static_cast<char>(static_cast<unsigned char>(value)); };
        if (code < 0x80) {
            byte(code);
        } else if (code < 0x800) {
            byte(0xC0 | code >> 6);
            byte(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            byte(0xE0 | code >> 12);
            byte(0x80 | (code >> 6 & 0x3F));
            byte(0x80 | (code & 0x3F));
        } else {
            byte(0xF0 | code >> 18);
            byte(0x80 | (code >> 12 & 0x3F));
            byte(0x80 | (code >> 6 & 0x3F));
            byte(0x80 | (code & 0x3F));
        }
        return to;
    }

    const char* number(const char* begin, std::string_view& token, bool& whole) {
        const char* const at = number_end(begin, whole);
        if (!at || is_word(*at)) return break_rule(Rule::number, begin, shown_word(begin));
        token = {begin, static_cast<std::size_t>(at - begin)};
        return at;
    }

    // False: the number is beyond a double.
    static bool number_value(std::string_view token, double& value) {
        return svmlight::parse_number(token.data(), token.data() + token.size(), value) == svmlight::ParsedNumber::ok;
    }

    // true, false or null. Up to 5 bytes are compared, which the padding allows.
    const char* word(const char* at, std::string_view& found) {
        for (const std::string_view candidate : {TRUE, FALSE, NOTHING}) {
            if (std::memcmp(at, candidate.data(), candidate.size()) == 0 && !is_word(at[candidate.size()])) {
                found = candidate;
                return at + candidate.size();
            }
        }
        return break_rule(Rule::value, at, shown_word(at));
    }

    // -- the columns of a row

    // The entries of a row whose opening brace is just before `at`.
    const char* columns(const char* at) {
        at = space(at);
        if (*at == '}') return at + 1;
        const std::uint64_t object = keys_.new_object();
        int* follows = &known_.first;
        while (true) {
            if (*at != '"') return break_rule(Rule::key, at, shown_word(at));
            const char* const quote = at++;
            std::string_view key;
            int c = -1;
            int k = *follows;
            if (k >= 0 && is_next(known_[k], at)) {
                at += known_[k].name.size() + 1;
            } else {
                if (!(at = string(at, key))) return nullptr;
                k = *follows = remembered(key, c);
            }
            bool first = true;
            if (k >= 0) {
                KnownKeys::Known& known = known_[k];
                first = known.row != known_.row;
                known.row = known_.row;
                key = known.name;
                c = known.column < -1 ? sink_.other_column(key) : known.column;
                follows = &known.next;
            } else {
                first = keys_.insert(object, key);
            }
            if (!first) return break_rule(Rule::duplicate, quote, at - quote);
            at = space(at);
            if (*at != ':') return break_rule(Rule::colon, at, shown_word(at));
            at = space(at + 1);
            at = c == -1 || sink_.ignores(c) ? skipped(at, 2) : cell(c, key, at);
            if (!at) return nullptr;
            at = space(at);
            if (*at == '}') return at + 1;
            if (*at != ',') return break_rule(Rule::comma, at, shown_word(at));
            at = space(at + 1);
        }
    }

    bool is_next(const KnownKeys::Known& known, const char* at) const {
        const std::size_t size = known.name.size();
        return known.plain && end_ - at > static_cast<std::ptrdiff_t>(size) && at[size] == '"' &&
               std::memcmp(at, known.name.data(), size) == 0;
    }

    // The number of a key in `known_`; -1: it is not kept there, and `c` is its column.
    int remembered(std::string_view key, int& c) {
        const int k = known_.find(key);
        if (k >= 0) return k;
        c = sink_.column(key);
        if (c < 0 && sink_.open()) c = sink_.other_column(key);
        const bool plain = std::none_of(key.begin(), key.end(), [](char byte) {
            return byte == '"' || byte == '\\' || static_cast<unsigned char>(byte) < 0x20;
        });
        return known_.add(key, c, plain);
    }

    const char* cell(int c, std::string_view key, const char* at) {
        std::string_view text;
        switch (*at) {
            case '"':
                if ((at = string(at + 1, text))) sink_.string(c, text);
                return at;
            case '[':
                sink_.begin_list(c);
                return list(at, 2, key, [&](std::string_view element) { sink_.element(c, element); });
            case '{':
                sink_.begin_map(c);
                path_.assign(key);
                return map(at, 2);
            case '-':
            case '0':
            case '1':
            case '2':
            case '3':
            case '4':
            case '5':
            case '6':
            case '7':
            case '8':
            case '9': {
                bool whole;
                double value;
                if (!(at = number(at, text, whole))) return nullptr;
                if (whole) {
                    sink_.number_text(c, text);
                } else if (number_value(text, value)) {
                    sink_.number(c, value);
                } else {
                    sink_.fail(features::TableRule::large, c, text);
                }
                return at;
            }
            default:
                if ((at = word(at, text)) && text != NOTHING) sink_.boolean(c, text == TRUE);
                return at;
        }
    }

    // Calls `element` with the text of each element of the list at `at`.
    template <class Element>
    const char* list(const char* at, int depth, std::string_view field, const Element& element) {
        at = space(at + 1);
        if (*at == ']') return at + 1;
        while (true) {
            std::string_view text;
            if (*at == '"') {
                if ((at = string(at + 1, text))) element(text);
            } else if (*at == '[' || *at == '{') {
                sink_.fail(features::TableRule::nested, field, {at, 1});
                at = skipped(at, depth + 1);
            } else if (*at == '-' || is_digit(*at)) {
                bool whole;
                if ((at = number(at, text, whole))) number_element(text, whole, field, element);
            } else if ((at = word(at, text)) && text != NOTHING) {
                element(text);
            }
            if (!at) return nullptr;
            at = space(at);
            if (*at == ']') return at + 1;
            if (*at != ',') return break_rule(Rule::list_comma, at, shown_word(at));
            at = space(at + 1);
        }
    }

    template <class Element>
    void number_element(std::string_view token, bool whole, std::string_view field, const Element& element) {
        double value;
        if (whole) {
            element(token == "-0" ? token.substr(1) : token);
        } else if (number_value(token, value)) {
            element(sink_.arena().copy(features::NumberText(value).text()));
        } else {
            sink_.fail(features::TableRule::large, field, token);
        }
    }

    // The object at `at`, whose path is `path_`.
    const char* map(const char* at, int depth) {
        if (depth > DEEPEST) return break_rule(Rule::deep, at, 1);
        at = space(at + 1);
        if (*at == '}') return at + 1;
        const std::uint64_t object = keys_.new_object();
        const std::uint32_t seed = features::murmur3(path_, 0);
        while (true) {
            if (*at != '"') return break_rule(Rule::key, at, shown_word(at));
            const char* const quote = at;
            std::string_view key, text;
            if (!(at = string(at + 1, key))) return nullptr;
            if (!keys_.insert(object, key)) return break_rule(Rule::duplicate, quote, at - quote);
            at = space(at);
            if (*at != ':') return break_rule(Rule::colon, at, shown_word(at));
            at = space(at + 1);
            if (*at == '"') {
                if ((at = string(at + 1, text))) sink_.entry(path_, seed, key, text);
            } else if (*at == '{') {
                const std::size_t size = path_.size();
                path_.append(1, '.').append(key);
                at = map(at, depth + 1);
                path_.resize(size);
            } else if (*at == '[') {
                if (depth == DEEPEST) return break_rule(Rule::deep, at, 1);
                at = list(at, depth + 1, path_, [&](std::string_view element) { sink_.entry(path_, seed, key, element); });
            } else if (*at == '-' || is_digit(*at)) {
                bool whole;
                double value;
                if (!(at = number(at, text, whole))) return nullptr;
                if (number_value(text, value) && std::fabs(value) <= std::numeric_limits<float>::max()) {
                    sink_.entry(path_, seed, key, value);
                } else {
                    sink_.fail(features::TableRule::large, path_ + "." + std::string(key), text);
                }
            } else if ((at = word(at, text)) && text != NOTHING) {
                sink_.entry(path_, seed, key, text);
            }
            if (!at) return nullptr;
            at = space(at);
            if (*at == '}') return at + 1;
            if (*at != ',') return break_rule(Rule::comma, at, shown_word(at));
            at = space(at + 1);
        }
    }

    // A value that is only checked.
    const char* skipped(const char* at, int depth) {
        std::string_view text;
        bool whole;
        if (*at == '"') return string(at + 1, text);
        if (*at == '-' || is_digit(*at)) return number(at, text, whole);
        if (*at != '{' && *at != '[') return word(at, text);
        if (depth > DEEPEST) return break_rule(Rule::deep, at, 1);
        const bool is_object = *at == '{';
        const std::uint64_t object = is_object ? keys_.new_object() : 0;
        const char close = is_object ? '}' : ']';
        at = space(at + 1);
        if (*at == close) return at + 1;
        while (true) {
            if (is_object) {
                if (*at != '"') return break_rule(Rule::key, at, shown_word(at));
                const char* const quote = at;
                if (!(at = string(at + 1, text))) return nullptr;
                if (!keys_.insert(object, text)) return break_rule(Rule::duplicate, quote, at - quote);
                at = space(at);
                if (*at != ':') return break_rule(Rule::colon, at, shown_word(at));
                at = space(at + 1);
            }
            if (!(at = skipped(at, depth + 1))) return nullptr;
            at = space(at);
            if (*at == close) return at + 1;
            if (*at != ',') return break_rule(is_object ? Rule::comma : Rule::list_comma, at, shown_word(at));
            at = space(at + 1);
        }
    }

    static constexpr std::string_view TRUE = "true", FALSE = "false", NOTHING = "null";

    Sink& sink_;
    Options options_;
    ParsedRows& rows_;
    bool suspicious_ = false;  // whether some line is not UTF-8
    std::optional<KnownKeys> own_;
    KnownKeys& known_;
    KeySet keys_;
    std::string path_;
    std::vector<char> last_;
    // The current line.
    const char* row_ = nullptr;
    const char* end_ = nullptr;
    int fault_ = 0;
    const char* place_ = nullptr;
    std::ptrdiff_t shown_ = 0;
};

}  // namespace rarestream::json
