// Vowpal Wabbit text to rows:  [label [importance [base]]] ['tag]|namespace[:scale] name[:value] ... |namespace ...
//
// Names are hashed as `vw --hash all` does it, so that a feature has the same slot there and here. Where Vowpal Wabbit
// warns of a fault and goes on with some other value, a row is refused here; docs/formats/vw.md lists the differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "csr.hpp"
#include "features/hashed_rows.hpp"
#include "features/murmur3.hpp"
#include "parsed_rows.hpp"
#include "svmlight_digits.hpp"
#include "svmlight_fast_pairs.hpp"
#include "svmlight_number.hpp"
#include "utf8.hpp"

namespace rarestream::vw {

enum class Rule : int {  // the messages are in readers/formats/vw.py
    bar = 1,
    label_number = 2,
    label_finite = 3,
    label_kind = 4,
    words = 5,
    importance = 6,
    base = 7,
    tab = 8,
    space_name = 9,
    scale_number = 10,
    value_number = 11,
    value_finite = 12,
    value_large = 13,
    control = 14,
    utf8 = 15,
    sum = 16,
};

// Writes where separators are in so many times 64 bytes, counted from `at`: colons, bars, and whatever is not above the
// blank. Returns their number. Room for 16 more is needed.
using FindSeparators = std::size_t (*)(const char* at, std::size_t blocks, std::uint16_t* found);

inline std::size_t find_separators_portable(const char* at, std::size_t blocks, std::uint16_t* found) {
    using svmlight::every_byte;
    const auto zeros = [](std::uint64_t x) {  // the top bit of every byte that is zero
        return ~(((x & every_byte(0x7f)) + every_byte(0x7f)) | x) & every_byte(0x80);
    };
    std::uint16_t* to = found;
    for (std::size_t i = 0; i < 64 * blocks; i += 8) {
        const std::uint64_t x = svmlight::load_eight(at + i);
        const std::uint64_t low = ~(((x & every_byte(0x7f)) + every_byte(0x7f - ' ')) | x) & every_byte(0x80);
        std::uint64_t mask = low | zeros(x ^ every_byte(':')) | zeros(x ^ every_byte('|'));
        for (; mask; mask &= mask - 1) *to++ = static_cast<std::uint16_t>(i + (__builtin_ctzll(mask) >> 3));
    }
    return static_cast<std::size_t>(to - found);
}

#if defined(__x86_64__)
RARESTREAM_AVX2 inline std::size_t find_separators_avx2(const char* at, std::size_t blocks, std::uint16_t* found) {
    const __m256i blank = _mm256_set1_epi8(' '), colon = _mm256_set1_epi8(':'), bar = _mm256_set1_epi8('|');
    const auto separators = [&](const char* p) __attribute__((target("avx2"))) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        const __m256i low = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, blank), blank);
        const __m256i signs = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, colon), _mm256_cmpeq_epi8(bytes, bar));
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(signs, low)));
    };
    std::uint16_t* to = found;
    for (std::size_t i = 0; i < blocks; ++i) {
        std::uint64_t mask = separators(at + 64 * i) | static_cast<std::uint64_t>(separators(at + 64 * i + 32)) << 32;
        const std::ptrdiff_t count = __builtin_popcountll(mask);
        // Sixteen at a time, whether there are as many or not: a loop over each would be mispredicted.
        for (std::ptrdiff_t done = 0; done < count; done += 16) {
            for (int j = 0; j < 16; ++j) {
                to[done + j] = static_cast<std::uint16_t>(64 * i + _tzcnt_u64(mask));
                mask = _blsr_u64(mask);
            }
        }
        to += count;
    }
    return static_cast<std::size_t>(to - found);
}
#endif

inline FindSeparators find_separators(Isa isa) {
#if defined(__x86_64__)
    if (uses_avx2(isa)) return find_separators_avx2;
#endif
    (void)isa;
    return find_separators_portable;
}

// The separators of a text that ends in a newline, which is the last one; up to 63 bytes after it are read. The list of the
// next ones is apart from the place in it, so that a loop can keep that in registers.
class Separators {
public:
    struct Place {
        const char* window;         // what the numbers are counted from
        const std::uint16_t* next;  // the next number
        const std::uint16_t* last;  // after the last one in the list
    };

    Separators(const char* text, const char* end, FindSeparators find) : end_(end), find_(find), place_(filled(text)) {}

    Place place() const { return place_; }
    void keep(const Place& place) { place_ = place; }

    RARESTREAM_ALWAYS_INLINE const char* next(Place& place) {
        while (__builtin_expect(place.next == place.last, 0)) place = filled(place.window + window);
        return place.window + *place.next++;
    }

    const char* next() { return next(place_); }

private:
    static constexpr std::size_t window = 2048;

    __attribute__((noinline)) Place filled(const char* from) {
        const std::size_t left = (static_cast<std::size_t>(end_ - from) + 63) / 64;
        return {from, found_, found_ + find_(from, std::min(left, window / 64), found_)};
    }

    const char* end_;
    FindSeparators find_;
    std::uint16_t found_[window + 16];
    Place place_;
};

// [-] digits [. digits] [e [+-] digits], which is all of the text up to the separator at `stop`; false if it is something
// else, or too long to be exact this way. Up to 20 bytes past it are read.
RARESTREAM_ALWAYS_INLINE bool short_number(const char* s, const char* stop, double& value) {
    using namespace svmlight;
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool minus = *s == '-';
    s += minus;
    std::uint64_t mantissa = static_cast<unsigned char>(*s ^ '0');
    unsigned n = 1;
    if (mantissa > 9) return false;
    if (s[1] != '.' && s + 1 != stop) {
        const std::uint64_t before = load_digits(s);
        n = leading_digits(before);
        mantissa = eight_digits(aligned_right(before, n));
    }
    s += n;
    int down = 0;  // the power of ten to divide by
    if (*s == '.') {
        const std::uint64_t after = load_digits(s + 1);
        n = leading_digits(after);
        if (n == 0) return false;
        mantissa = mantissa * 100000000 + eight_digits(aligned_left(after, n));
        down = 8;
        s += n + 1;
        if (n == 8 && is_digit(*s)) {
            if (mantissa >= 10000000000ull) return false;  // 10^10 * 10^8 fits
            const std::uint64_t more = load_digits(s);
            n = leading_digits(more);
            mantissa = mantissa * 100000000 + eight_digits(aligned_left(more, n));
            down = 16;
            s += n;
        }
    }
    if (s != stop) {
        if ((*s | 0x20) != 'e') return false;
        ++s;
        const bool minus_exponent = *s == '-';
        s += minus_exponent || *s == '+';
        if (!is_digit(*s)) return false;
        int written = *s++ - '0';
        if (is_digit(*s)) written = written * 10 + (*s++ - '0');
        down += minus_exponent ? written : -written;
        if (s != stop || down < -22 || down > 22) return false;
    }
    if (mantissa > (1ull << 53)) return false;
    value = static_cast<double>(static_cast<std::int64_t>(mantissa));
    if (down > 0) value /= powers[down];
    if (down < 0) value *= powers[-down];
    value = minus ? -value : value;
    return true;
}

struct Options {
    int bits = 22;
    std::int64_t stop_after = 1;  // bad rows; the rest of the chunk is left unread
};

class Parser {
public:
    // `filter` is the calling thread's own; without one, no names are collected.
    Parser(const Options& options, Isa isa, features::NameFilter* filter, ParsedRows& rows)
        : options_(options), find_(find_separators(isa)), rows_(rows), hashed_(options.bits, filter, rows, isa) {}

    // The text consists of whole lines; the last line end may be missing.
    void parse(const char* text, std::size_t size) {
        if (size == 0) return;
        suspicious_ = first_invalid_utf8(text, text + size) != text + size;
        // Separators and numbers are read past the end of a line: the last lines are copied to where that is allowed.
        hashed_.reserve(size / 8 + 64);
        std::size_t cut = size > padding ? size - padding : 0;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        if (!lines(text, text + cut) || cut == size) return;
        std::string tail(text + cut, size - cut);
        if (tail.back() != '\n') tail.push_back('\n');
        const std::size_t end = tail.size();
        tail.append(padding, '\n');
        lines(tail.data(), tail.data() + end);
    }

private:
    static constexpr std::size_t padding = 64;
    static constexpr int most_words = 3;  // before the bar, the tag aside
    static constexpr unsigned known_spaces = 64;

    // A namespace of up to six bytes as it is written, from its bar to the blank after it, and its hash.
    struct Space {
        std::uint64_t text = 0, mask = 0;  // of eight bytes, those that count
        std::uint32_t seed = 0, size = 0;
    };

    // The text of a feature's value, and what it is multiplied by.
    struct Written {
        const char* begin;  // nullptr: there is none
        const char* end;
        double scale;
    };

    // The lines from `at` to `end`; the last byte is a newline, and `padding` more may be read. False: stopped.
    bool lines(const char* at, const char* end) {
        if (at == end) return true;
        Separators separators(at, end, find_);
        while (at != end) {
            ++rows_.lines_read;
            line_ = at;
            irregular_ = false;
            hashed_.begin_row();
            if (row(separators, at, end)) {
                keep();
            } else {
                hashed_.drop_row();
            }
            while (*at != '\n') at = separators.next();
            ++at;
            if (static_cast<std::int64_t>(rows_.bad.size()) >= options_.stop_after) return false;
        }
        return true;
    }

    // Reads the line at `at`, which is left at a separator in it; whether it is a row to keep.
    bool row(Separators& separators, const char*& at, const char* end) {
        if (suspicious_ && !is_utf8(at, end)) {
            at = separators.next();
            return false;
        }
        if (!head(separators, at)) return false;
        if (!features(separators, at)) return false;
        if (!ends_line(at)) return reject(Rule::control, at, 1);
        if (!hashed_.end_row()) return reject(Rule::sum, line_, 0);
        return true;
    }

    bool is_utf8(const char* at, const char* end) {
        const char* const stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
        const char* const invalid = first_invalid_utf8(at, stop);
        return invalid == stop || reject(Rule::utf8, invalid, std::min<std::ptrdiff_t>(4, stop - invalid));
    }

    // What is before the first bar, at which `at` is left. False: the row is bad, or the line is blank.
    bool head(Separators& separators, const char*& at) {
        std::string_view words[most_words + 1];
        int count = 0;
        const char* begin = at;
        const char* tab = nullptr;
        for (;; begin = at + 1) {
            do at = separators.next();
            while (*at == ':');
            if (at != begin && ++count <= most_words + 1) words[count - 1] = view(begin, at);
            if (*at == '|') break;
            if (*at == ' ') continue;
            if (*at == '\t') {
                if (!tab) tab = at;
            } else if (!ends_line(at)) {
                return reject(Rule::control, at, 1);
            } else {
                return count ? reject(Rule::bar, words[0]) : false;
            }
        }
        label_ = std::numeric_limits<double>::quiet_NaN();
        importance_ = 1;
        tag_ = {};
        column_ = 1;
        if (tab) return reject(Rule::tab, tab, 0);
        if (count > most_words + 1) return reject(Rule::words, words[most_words]);
        if (count > 0 && (at != begin || words[count - 1].front() == '\'')) {
            tag_ = words[--count];
            if (tag_.front() == '\'') tag_.remove_prefix(1);
        }
        if (count == 0) return true;
        if (count > most_words) return reject(Rule::words, words[most_words]);
        column_ = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(words[0].data() - line_ + 1, INT32_MAX));
        return label(words[0]) && (count < 2 || importance(words[1])) && (count < 3 || base(words[2]));
    }

    bool label(std::string_view word) {
        const bool minus = word.front() == '-', sign = minus || word.front() == '+';
        if (word.size() == 1u + sign && svmlight::is_digit(word.back())) {
            label_ = word.back() - '0';
            if (minus) label_ = -label_;
            return true;
        }
        switch (svmlight::parse_number(word.data(), word.data() + word.size(), label_)) {
            case svmlight::ParsedNumber::ok:
                return true;
            case svmlight::ParsedNumber::malformed: {
                const bool other = word == "shared" || word.find(':') != std::string_view::npos;
                return reject(other ? Rule::label_kind : Rule::label_number, word);
            }
            default:
                return reject(Rule::label_finite, word);
        }
    }

    bool importance(std::string_view word) {
        double& h = importance_;
        const bool number = svmlight::parse_number(word.data(), word.data() + word.size(), h) == svmlight::ParsedNumber::ok;
        return (number && (h == 0 || (h >= SMALLEST_IMPORTANCE && h <= LARGEST_IMPORTANCE))) ||
               reject(Rule::importance, word);
    }

    // A prediction to start from. It would change the model, unless it is 0.
    bool base(std::string_view word) {
        double start;
        const bool number =
            svmlight::parse_number(word.data(), word.data() + word.size(), start) == svmlight::ParsedNumber::ok;
        return (number && start == 0) || reject(Rule::base, word);
    }

    // The namespaces from the bar `at` on, with their features. `at` is left at the separator after them. False: rejected.
    //
    // This loop only finds where names and values are; what they are is found out for many at once, by add_waiting.
    bool features(Separators& separators, const char*& at) {
        Separators::Place place = separators.place();
        const char* begin;  // of the text between two separators
        const char* end = at;
        char stop = '|';  // the separator at `end`
        std::size_t waiting = 0;
        const auto next = [&]() RARESTREAM_INLINE_LAMBDA {
            begin = end + 1;
            end = separators.next(place);
            stop = *end;
        };
        bool fine = true;
        for (unsigned count = 0; stop == '|' && fine; ++count) {
            Space& known = spaces_[count % known_spaces];
            const char* const space = end + 1;
            std::uint32_t seed = known.seed;
            double scale = 1;
            if ((svmlight::load_eight(end) & known.mask) == known.text && place.next != place.last && known.mask) {
                end = space + known.size;
                stop = ' ';
                ++place.next;
            } else {
                next();
                seed = seed_of(view(space, end), stop, known);
            }
            if (stop == ':') {
                next();
                double found = 1;
                fine = add_waiting(waiting) && scale_of(space, begin, end, found);
                if (!fine) break;
                waiting = 0;
                scale = found;
            }
            const float unwritten = static_cast<float>(scale);  // the value of features without one
            std::uint32_t unnamed = 0;                          // features without a name so far
            irregular_ |= unwritten == 0;
            while (stop == ' ' || stop == '\t') {
                next();
                const std::size_t size = static_cast<std::size_t>(end - begin);
                if (size == 0 && stop != ':') continue;
                if (waiting == features::Names::SIZE) {
                    if (!(fine = add_waiting(waiting))) break;
                    waiting = 0;
                }
                names_.texts[waiting] = begin;
                names_.sizes[waiting] = static_cast<std::uint32_t>(size);
                names_.hashes[waiting] = seed;
                spaces_of_names_[waiting] = space;
                values_[waiting] = unwritten;
                if (stop != ':') {
                    written_[waiting].begin = nullptr;
                    ++waiting;
                    continue;
                }
                next();
                irregular_ = true;
                written_[waiting++] = {begin, end, scale};
                if (size == 0) {
                    if (!(fine = add_unnamed(waiting, seed + unnamed, unnamed))) break;
                    waiting = 0;
                    ++unnamed;
                }
            }
        }
        fine = fine && add_waiting(waiting);
        separators.keep(place);
        at = end;
        return fine;
    }

    // The number after the colon of a namespace.
    __attribute__((noinline)) bool scale_of(const char* space, const char* begin, const char* end, double& scale) {
        if (space + 1 == begin) return reject(Rule::space_name, space, token(space));
        return number(begin, end, Rule::scale_number, scale) &&
               (fits(scale) || reject(Rule::value_large, begin, end - begin));
    }

    // Adds the features that wait, in the order in which they are written. False: a value is rejected.
    __attribute__((noinline)) bool add_waiting(std::size_t waiting) {
        if (irregular_ && !read_values(waiting)) return false;
        hashed_.add(names_, values_, waiting, [this](std::size_t i) { return space_of(i); });
        return true;
    }

    // Reads the values of the features that wait, and drops those that are zero.
    __attribute__((noinline)) bool read_values(std::size_t& waiting) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < waiting; ++i) {
            if (written_[i].begin && !value_of(written_[i], values_[i])) return false;
            names_.texts[kept] = names_.texts[i];
            names_.sizes[kept] = names_.sizes[i];
            names_.hashes[kept] = names_.hashes[i];
            spaces_of_names_[kept] = spaces_of_names_[i];
            values_[kept] = values_[i];
            kept += values_[i] != 0;
        }
        waiting = kept;
        return true;
    }

    // The last feature that waits has no name: its slot is given. False: a value is rejected.
    __attribute__((noinline)) bool add_unnamed(std::size_t waiting, std::uint32_t slot, std::uint32_t number) {
        const Written written = written_[--waiting];
        const std::string_view space = space_of(waiting);
        float value;
        if (!add_waiting(waiting) || !value_of(written, value)) return false;
        if (value != 0) hashed_.add(slot, space, name_of_unnamed(number), value);
        return true;
    }

    RARESTREAM_ALWAYS_INLINE bool value_of(const Written& written, float& value) {
        double found;
        if (!number(written.begin, written.end, Rule::value_number, found)) return false;
        if (written.scale != 1) found *= written.scale;
        value = static_cast<float>(found);
        return fits(found) || reject(Rule::value_large, written.begin, written.end - written.begin);
    }

    // The hash of a namespace, which is remembered if it is short.
    __attribute__((noinline)) std::uint32_t seed_of(std::string_view space, char stop, Space& known) {
        const std::uint32_t seed = features::murmur3_padded(space.data(), space.size(), 0);
        if (space.size() <= 6 && stop == ' ') {
            const std::uint64_t mask = ~0ull >> (8 * (6 - space.size()));
            known = {svmlight::load_eight(space.data() - 1) & mask, mask, seed, static_cast<std::uint32_t>(space.size())};
        }
        return seed;
    }

    // A feature without a name has the slot of its namespace, the next one the slot after that. They are remembered as :0,
    // :1 and so on, those from :1000 on as ":": no name can contain a colon.
    static std::string_view name_of_unnamed(std::uint32_t number) {
        static const std::vector<std::string>* const names = [] {  // never destroyed: threads may outlive the interpreter
            auto* made = new std::vector<std::string>;
            for (int i = 0; i < 1000; ++i) made->push_back(":" + std::to_string(i));
            return made;
        }();
        return number < names->size() ? std::string_view((*names)[number]) : ":";
    }

    std::string_view space_of(std::size_t i) const {
        const char* const begin = spaces_of_names_[i];
        const char* end = begin;
        while (static_cast<unsigned char>(*end) > ' ' && *end != ':' && *end != '|') ++end;
        return view(begin, end);
    }

    // The number from `text` to the separator at `stop`. False: there is none, and the row is rejected.
    RARESTREAM_ALWAYS_INLINE bool number(const char* text, const char* stop, Rule rule, double& value) {
        return (short_number(text, stop, value) && *stop != ':') || long_number(text, stop, rule, value);
    }

    __attribute__((noinline)) bool long_number(const char* text, const char* stop, Rule rule, double& value) {
        if (*stop == ':') return reject(rule, text, token(text));
        switch (svmlight::parse_number(text, stop, value)) {
            case svmlight::ParsedNumber::ok:
                return true;
            case svmlight::ParsedNumber::malformed:
                return reject(rule, text, stop - text);
            case svmlight::ParsedNumber::not_finite:
                return reject(Rule::value_finite, text, stop - text);
            default:
                return reject(Rule::value_large, text, stop - text);
        }
    }

    void keep() {
        rows_.labels.push_back(label_);
        rows_.lines.push_back(rows_.lines_read);
        rows_.columns.push_back(column_);
        rows_.keep_importance(importance_);
        rows_.keep_tag(tag_);
    }

    bool reject(Rule rule, std::string_view word) {
        return reject(rule, word.data(), static_cast<std::ptrdiff_t>(word.size()));
    }

    bool reject(Rule rule, const char* place, std::ptrdiff_t size) {
        const std::size_t shown = std::min(static_cast<std::size_t>(size), LONGEST_TOKEN);
        rows_.bad.push_back({rows_.lines_read, place - line_ + 1, static_cast<int>(rule), std::string(place, shown)});
        return false;
    }

    static bool fits(double value) { return std::fabs(static_cast<float>(value)) <= std::numeric_limits<float>::max(); }
    static bool ends_line(const char* at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }
    static std::string_view view(const char* begin, const char* end) {
        return {begin, static_cast<std::size_t>(end - begin)};
    }

    // Bytes up to the next blank, control character or bar: what a message shows.
    static std::ptrdiff_t token(const char* from) {
        const char* to = from;
        while (static_cast<unsigned char>(*to) > ' ' && *to != '|' && to - from < 256) ++to;
        return to - from;
    }

    Options options_;
    FindSeparators find_;
    ParsedRows& rows_;
    features::HashedRows hashed_;
    bool suspicious_ = false;     // whether some line is not UTF-8
    Space spaces_[known_spaces];  // the last one at each place in a row: mostly it is there again
    // Features of the current row that are not hashed yet.
    features::Names names_;
    const char* spaces_of_names_[features::Names::SIZE];
    float values_[features::Names::SIZE];
    Written written_[features::Names::SIZE];
    bool irregular_ = false;  // whether values of the row are written, or may be zero
    // The current row.
    const char* line_ = nullptr;
    double label_ = 0, importance_ = 1;
    std::string_view tag_ = {};
    std::int32_t column_ = 1;
};

}  // namespace rarestream::vw
