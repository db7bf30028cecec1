// svmlight text to rows:  label [qid:N] [cost:W] index:value ...  # comment
//
// A chunk of whole lines becomes arrays; a line that breaks a rule becomes a BadRow and leaves nothing in them.
// Most lines are parsed by svmlight_fast_lines.hpp, ordinary pairs of others by svmlight_fast_pairs.hpp; anything that
// stops at (an exponent, qid, a comment, a fault) is parsed here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "parsed_rows.hpp"
#include "svmlight_fast_lines.hpp"
#include "svmlight_fast_pairs.hpp"
#include "svmlight_number.hpp"

namespace rarestream::svmlight {

enum class Rule : int {  // the messages are in readers/formats/svmlight.py
    label_missing = 1,
    label_number = 2,
    label_finite = 3,
    colon = 4,
    index_whole = 5,
    index_negative = 6,
    index_zero = 7,
    index_large = 8,
    value_number = 9,
    value_finite = 10,
    value_large = 11,
    cost = 12,
    qid = 13,
    junk = 14,
    sum_large = 15,
};

struct Options {
    int first_index = 1;          // 0 or 1: what the file counts from
    bool label_required = true;   // else a row may start with its features and its label is NaN
    std::int64_t stop_after = 1;  // bad rows; the rest of the chunk is left unread
};

class Parser {
public:
    Parser(Options options, Isa isa, ParsedRows& rows)
        : options_(options), isa_(isa), fast_pairs_(fast_pairs(isa)), rows_(rows) {}

    void parse(const char* text, std::size_t size) {
        // A pair and the separator after it have at least four bytes.
        rows_.indices = pooled<std::int32_t>(size / 4 + 2);
        rows_.values = pooled<float>(size / 4 + 2);
        for (auto* vector : {&rows_.indptr, &rows_.lines}) vector->reserve(size / 64 + 2);
        rows_.labels.reserve(size / 64 + 2);
        rows_.columns.reserve(size / 64 + 2);
        // The fast path reads past the end of a line: the last lines are copied to where that is allowed.
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
    static constexpr std::int64_t MOST_OTHERS = 1024;  // lines that are parsed one by one before others are tried again
    enum class Step { next, done, bad };

    // The lines from `at` to `end`; the last byte is a newline, and `padding` more may be read. False: stopped.
    bool lines(const char* at, const char* end) {
        const char* const text = at;
        for (std::int64_t others = 1; at != end;) {
            bool usual = false;
            if (!usual_lines(text, at, end, usual)) return false;
            others = usual ? 1 : std::min(2 * others, MOST_OTHERS);
            for (std::int64_t left = others; left > 0 && at != end; --left) {
                if (!line(at, end)) return false;
            }
        }
        return true;
    }

    // The line at `at`, which is moved past it. False: stopped.
    bool line(const char*& at, const char* end) {
        ++rows_.lines_read;
        line_ = at;
        if (row(at)) keep();
        // In any case, `at` is still in this line.
        if (*at != '\n') at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
        ++at;
        return static_cast<std::int64_t>(rows_.bad.size()) < options_.stop_after;
    }

    // Lines from `at`, which is moved past them, until several are not as most are. `usual`: whether some were.
    bool usual_lines([[maybe_unused]] const char* text, [[maybe_unused]] const char*& at, [[maybe_unused]] const char* end,
                     [[maybe_unused]] bool& usual) {
#if defined(__x86_64__)
        if (!uses_avx2(isa_) || end - text > std::int64_t{UINT32_MAX}) return true;
        separators_.start(text, at, end);
        Separators::Line found;
        for (int others = 0; others < 4 && separators_.next(found);) {
            if (usual_line(text, at, found)) {
                at = text + *found.newline + 1;
                usual = true;
                others = 0;
            } else if (++others; !line(at, end)) {
                return false;
            }
        }
#endif
        return true;
    }

#if defined(__x86_64__)
    // A line whose separators are known, if it is as nearly all lines are; else nothing has changed.
    bool usual_line(const char* text, const char* at, const Separators::Line& found) {
        const char* const begin = at;
        if (!fast_label(at) || text + *found.begin + 1 != at) return false;
        const std::uint32_t* last = found.newline;
        if (last[-1] + 1 == *last) --last;  // a blank before the newline
        const std::ptrdiff_t n = (last - found.begin) / 2;
        // Four pairs are parsed at once, and eight bytes before a colon are read.
        if (n < 4 || last != found.begin + 2 * n || found.colons != n || found.begin[1] < 8) return false;
        if (!pairs_between(text, found.begin + 1, n, options_.first_index, rows_.indices.get() + filled_,
                           rows_.values.get() + filled_)) {
            return false;
        }
        ++rows_.lines_read;
        begin_ = filled_;
        filled_ += n;
        column_ = 1;
        importance_ = 1;
        tag_ = -1;
        line_ = begin;
        keep();
        return true;
    }
#endif

    // Reads the line at `at`, which is left somewhere in it; whether it is a row to keep.
    bool row(const char*& at) {
        begin_ = filled_;
        importance_ = 1;
        tag_ = -1;
        while (is_blank(*at)) ++at;
        if (*at == '\n' || *at == '#') return false;
        column_ = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(at - line_ + 1, INT32_MAX));
        if (fast_label(at)) return features(at) && (builder_.ascending || sort_row());
        const char* const stop = separator(at);
        if (*stop == ':') {
            if (options_.label_required) return reject(Rule::label_missing, at, token(at));
            label_ = std::numeric_limits<double>::quiet_NaN();
        } else {
            if (!ends(*stop)) return reject(Rule::junk, stop, 1);
            const ParsedNumber read = parse_number(at, stop, label_);
            if (read == ParsedNumber::malformed) return reject(Rule::label_number, at, stop - at);
            if (read != ParsedNumber::ok) return reject(Rule::label_finite, at, stop - at);
            at = stop;
            if (!is_blank(*stop)) return true;
            ++at;
        }
        return features(at) && (builder_.ascending || sort_row());
    }

    // A label of one digit with or without a sign, and the blank after it.
    bool fast_label(const char*& at) {
        const bool minus = *at == '-', sign = minus | (*at == '+');
        const unsigned digit = static_cast<unsigned char>(at[sign] ^ '0');
        if (digit > 9 || at[sign + 1] != ' ') return false;
        const double signs[] = {1, -1};
        label_ = signs[minus] * digit;
        at += sign + 2;
        return true;
    }

    // The pairs of a line from `at`, which is left in the line.
    bool features(const char*& at) {
        builder_ = {rows_.indices.get() + filled_, rows_.values.get() + filled_, options_.first_index, -1, true};
        for (Step step = Step::next; step == Step::next;) {
            at = fast_pairs_(at, builder_);
            if (*at == '\n') break;
            // What AVX2 stopped at may just be a longer number. After a long index, as they ascend, all are long.
            at = some_pairs(at, builder_, leading_digits(load_digits(at)) == 8 ? PTRDIFF_MAX : 8);
            if (*at == '\n') break;
            const char* const stop = separator(at);
            if (*stop == ':') {
                step = slow_pair(at, stop);
            } else if (!ends(*stop)) {
                step = bad(Rule::junk, stop, 1);
            } else if (stop != at) {
                step = bad(Rule::colon, at, stop - at);
            } else if (*at == '#') {
                step = Step::done;
            } else {
                ++at;
            }
            if (step == Step::bad) return false;
        }
        filled_ = builder_.index - rows_.indices.get();
        return true;
    }

    // The pair at `at`, or whatever else has a colon: qid, cost, a fault. Moves past it.
    Step slow_pair(const char*& at, const char* colon) {
        const char* const key = at;
        if (key == colon && key != line_ && !is_blank(key[-1])) {  // a second colon, as in 3:4:5
            const char* from = key;
            while (from[-1] != ':') --from;
            return bad(Rule::value_number, from, token(from));
        }
        const char* const text = colon + 1;
        const char* const end = separator(text);
        const bool whole = *end != ':';
        at = end;
        double number = 0;
        if (is(key, colon, "cost")) {
            const bool fine = whole && parse_number(text, end, importance_) == ParsedNumber::ok &&
                              (importance_ == 0 || importance_ >= SMALLEST_IMPORTANCE) && importance_ <= LARGEST_IMPORTANCE;
            return fine ? Step::next : bad(Rule::cost, text, token(text));
        }
        if (is(key, colon, "qid")) {
            const bool fine = whole && whole_number(text, end, std::numeric_limits<std::int64_t>::max(), tag_);
            return fine ? Step::next : bad(Rule::qid, text, token(text));
        }
        std::int64_t index;
        const bool negative = colon - key > 1 && *key == '-';
        const std::int64_t largest = std::int64_t{std::numeric_limits<std::int32_t>::max()} - 1 + options_.first_index;
        if (!whole_number(key + negative, colon, largest, index)) {
            const bool digits = key != colon && std::all_of(key + negative, colon, is_digit);
            return bad(!digits ? Rule::index_whole : negative ? Rule::index_negative : Rule::index_large, key, colon - key);
        }
        if (negative) return bad(Rule::index_negative, key, colon - key);
        const ParsedNumber read = whole ? parse_number(text, end, number) : ParsedNumber::malformed;
        if (read == ParsedNumber::malformed) return bad(Rule::value_number, text, token(text));
        if (read == ParsedNumber::not_finite) return bad(Rule::value_finite, text, token(text));
        if (read == ParsedNumber::too_large || !fits(static_cast<float>(number))) {
            return bad(Rule::value_large, text, token(text));
        }
        const std::int32_t j = static_cast<std::int32_t>(index - options_.first_index);
        *builder_.index++ = j;
        *builder_.value++ = static_cast<float>(number);
        builder_.ascending &= j > builder_.previous;
        builder_.previous = j;
        return Step::next;
    }

    // Sorts a row whose indices do not ascend. False: it has an index 0 where counting starts at 1, or a sum that float32
    // cannot hold.
    bool sort_row() {
        std::int32_t* const indices = rows_.indices.get() + begin_;
        float* const values = rows_.values.get() + begin_;
        if (std::find(indices, builder_.index, -1) != builder_.index) return reject(Rule::index_zero, zero_index(), 1);
        const std::int64_t size = canonicalise_row(indices, values, filled_ - begin_, scratch_);
        filled_ = begin_ + size;
        return std::all_of(values, values + size, fits) || reject(Rule::sum_large, line_, 0);
    }

    // The position of the first index in the line that consists of zeros. There is one.
    const char* zero_index() const {
        for (const char* at = line_;; ++at) {
            const char* const from = at;
            while (*at == '0') ++at;
            if (at != from && *at == ':' && (from == line_ || is_blank(from[-1]))) return from;
            if (at != from) --at;
        }
    }

    void keep() {
        rows_.indptr.push_back(filled_);
        rows_.labels.push_back(label_);
        rows_.lines.push_back(rows_.lines_read);
        rows_.columns.push_back(column_);
        if (filled_ > begin_) {
            rows_.width = std::max<std::int64_t>(rows_.width, std::int64_t{rows_.indices[filled_ - 1]} + 1);
        }
        const std::size_t n = rows_.labels.size();
        rows_.keep_importance(importance_);
        if (tag_ != -1 || !rows_.tags.empty()) {
            rows_.tags.resize(n, -1);
            rows_.tags[n - 1] = tag_;
        }
    }

    bool reject(Rule rule, const char* place, std::ptrdiff_t size) {
        filled_ = begin_;
        const std::size_t shown = std::min(static_cast<std::size_t>(size), LONGEST_TOKEN);
        rows_.bad.push_back({rows_.lines_read, place - line_ + 1, static_cast<int>(rule), std::string(place, shown)});
        return false;
    }

    Step bad(Rule rule, const char* place, std::ptrdiff_t size) {
        reject(rule, place, size);
        return Step::bad;
    }

    static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
    static bool ends(char c) { return is_blank(c) || c == '\n' || c == '#'; }
    static bool fits(float value) { return std::fabs(value) <= std::numeric_limits<float>::max(); }

    // The next colon, start of a comment, blank or control character; the newline at the latest.
    static const char* separator(const char* at) {
        while (static_cast<unsigned char>(*at) > ' ' && *at != ':' && *at != '#') ++at;
        return at;
    }

    // Bytes up to the next blank or control character: what a message shows.
    static std::ptrdiff_t token(const char* from) {
        const char* to = from;
        while (static_cast<unsigned char>(*to) > ' ' && to - from < 256) ++to;
        return to - from;
    }

    static bool is(const char* s, const char* end, const char* word) {
        const std::size_t n = std::strlen(word);
        return static_cast<std::size_t>(end - s) == n && std::memcmp(s, word, n) == 0;
    }

    static bool whole_number(const char* s, const char* end, std::int64_t largest, std::int64_t& number) {
        if (s == end) return false;
        std::int64_t sum = 0;
        for (; s != end; ++s) {
            if (!is_digit(*s) || sum > (largest - (*s - '0')) / 10) return false;
            sum = sum * 10 + (*s - '0');
        }
        number = sum;
        return true;
    }

    Options options_;
    Isa isa_;
    FastPairs fast_pairs_;
#if defined(__x86_64__)
    Separators separators_{isa_ == Isa::avx512};
#endif
    ParsedRows& rows_;
    // The current row.
    const char* line_ = nullptr;
    std::int64_t begin_ = 0, filled_ = 0, tag_ = -1;
    std::int32_t column_ = 1;
    double label_ = 0, importance_ = 1;
    RowBuilder builder_{};
    std::vector<std::pair<std::int32_t, float>> scratch_;
};

inline ParsedRows parse(const char* text, std::size_t size, const Options& options, Isa isa) {
    ParsedRows rows;
    Parser(options, isa, rows).parse(text, size);
    return rows;
}

}  // namespace rarestream::svmlight
