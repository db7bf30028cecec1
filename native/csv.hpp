// CSV text to rows of a table, as RFC 4180 has it: cells apart by a delimiter, in quotes if they contain one, a quote or a
// line end; a quote within quotes is doubled. As in Python's csv module, a quote inside a cell that does not start with one
// is an ordinary character. Lines end in LF or CR LF. Blank lines are skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "features/table.hpp"
#include "parsed_rows.hpp"
#include "utf8.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rarestream::csv {

enum class Rule : int {  // beyond those of features::TableRule; the messages are in readers/formats/csv.py
    ragged = 20,
    after_quote = 21,
    nul = 22,
    utf8 = 23,
    unclosed = 24,
};

struct Dialect {
    char delimiter = ',';
    char quote = '"';  // 0: none
};

// Finds the delimiters, quotes and line ends of a text, 64 bytes at a time, and notices bytes that are not plain ASCII.
class Scanner {
public:
    Scanner(const char* text, const char* end, Dialect dialect) : end_(end), dialect_(dialect) {
        place_ = {text, loaded(text)};
    }

    // Whether there was a NUL, or a byte of a longer character, since this was last called, give or take 64 bytes.
    bool odd() {
        const bool odd = odd_;
        odd_ = block_odd_;
        return odd;
    }

    // Apart from the scanner, so that a loop can keep it in registers.
    struct Place {
        const char* base;
        std::uint64_t mask;  // of the 64 bytes from there on, those that are still to be returned
    };

    Place place() const { return place_; }
    void keep(const Place& place) { place_ = place; }

    // The next of them; `end` after the last.
    RARESTREAM_ALWAYS_INLINE const char* next(Place& place) {
        while (!place.mask) {
            if (end_ - place.base <= 64) return end_;
            place.base += 64;
            place.mask = loaded(place.base);
        }
        const char* const found = place.base + __builtin_ctzll(place.mask);
        place.mask &= place.mask - 1;
        return found;
    }

    const char* next() { return next(place_); }

private:
    std::uint64_t loaded(const char* base) {
        const std::ptrdiff_t left = end_ - base;
        std::uint64_t mask;
        if (left < 64) {
            char tail[64];
            std::memset(tail, 'x', sizeof tail);
            if (left > 0) std::memcpy(tail, base, static_cast<std::size_t>(left));
            mask = left <= 0 ? 0 : marks(tail) & ((std::uint64_t{1} << left) - 1);
        } else {
            mask = marks(base);
        }
        odd_ |= block_odd_;
        return mask;
    }

    std::uint64_t marks(const char* at) {
        std::uint64_t mask = 0;
#if defined(__x86_64__)
        const __m128i delimiter = _mm_set1_epi8(dialect_.delimiter), line = _mm_set1_epi8('\n');
        const __m128i quote = _mm_set1_epi8(dialect_.quote ? dialect_.quote : '\n');
        __m128i odd = _mm_setzero_si128();  // the sign bit of a byte: not below 0x80, or zero
        for (int i = 0; i < 4; ++i) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
            const __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, delimiter), _mm_cmpeq_epi8(bytes, line)),
                                               _mm_cmpeq_epi8(bytes, quote));
            mask |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(found))) << (16 * i);
            odd = _mm_or_si128(odd, _mm_or_si128(bytes, _mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
        }
        block_odd_ = _mm_movemask_epi8(odd) != 0;
#else
        bool odd = false;
        for (int i = 0; i < 64; ++i) {
            const bool found = at[i] == dialect_.delimiter || at[i] == '\n' || (dialect_.quote && at[i] == dialect_.quote);
            mask |= std::uint64_t{found} << i;
            odd |= at[i] == 0 || static_cast<unsigned char>(at[i]) >= 0x80;
        }
        block_odd_ = odd;
#endif
        return mask;
    }

    const char* end_;
    Dialect dialect_;
    bool odd_ = false, block_odd_ = false;
    Place place_;
};

// Where the last whole row of a text that starts with a row ends: after a line end that is not in quotes; 0 if there is
// none. `open` is where a quote opens that is not closed, if there is one after that, else -1.
inline std::size_t end_of_rows(const char* text, std::size_t size, Dialect dialect, std::ptrdiff_t& open) {
    open = -1;
    if (!dialect.quote || !std::memchr(text, dialect.quote, size)) {
        while (size > 0 && text[size - 1] != '\n') --size;
        return size;
    }
    const char* const end = text + size;
    Scanner scanner(text, end, dialect);
    const char* rows_end = text;
    const char* cell = text;
    for (const char* at = scanner.next(); at != end;) {
        if (*at != dialect.quote || at != cell) {
            if (*at != dialect.quote) cell = at + 1;
            if (*at == '\n') rows_end = cell;
            at = scanner.next();
            continue;
        }
        // In quotes: up to the next quote that is not doubled.
        const char* const opened = at;
        for (at = scanner.next(); at != end; at = scanner.next()) {
            if (*at != dialect.quote) continue;
            const char* const following = scanner.next();
            if (following != at + 1 || following == end || *following != dialect.quote) {
                at = following;
                cell = nullptr;  // what follows a closing quote is no cell's start
                break;
            }
        }
        if (cell == opened) {  // not closed
            open = opened - text;
            break;
        }
    }
    return static_cast<std::size_t>(rows_end - text);
}

struct Options {
    Dialect dialect;
    bool skip_header = false;     // whether the first row names the columns
    std::int64_t stop_after = 1;  // bad rows; the rest of the chunk is left unread
};

// Calls the methods of `Sink`, a TableEncoder, a TableSurvey or a Picker. `columns` has the sink's number of each cell of a
// row; -1: skipped.
template <class Sink>
class Parser {
public:
    Parser(Sink& sink, const std::vector<int>& columns, const Options& options, ParsedRows& rows)
        : sink_(sink), columns_(columns), options_(options), rows_(rows) {}

    // The text consists of whole rows; the last line end may be missing.
    void parse(const char* text, std::size_t size) {
        const char* const end = text_end_ = text + size;
        sink_.reserve(size / 5 + 64);
        Scanner scanner(text, end, options_.dialect);
        const char* at = text;
        bool header = options_.skip_header;
        std::int64_t line = 1;  // of the row
        std::size_t width = 0;
        while (at < end) {
            row_ = at;
            count_ = 0;
            quoted_lines_ = 0;
            fault_ = 0;
            sink_.begin_row();
            at = row(scanner, at, end);
            suspicious_ = scanner.odd();
            const std::int64_t lines = 1 + quoted_lines_;
            rows_.lines_read += lines;
            if (header) {
                header = false;
                line += lines;
                continue;
            }
            width = count_;
            if (row_ + (*row_ == '\r') == end || row_[*row_ == '\r'] == '\n') {  // a blank line
                sink_.drop_row();
                line += lines;
                continue;
            }
            finish(line, width, at);
            line += lines;
            if (static_cast<std::int64_t>(rows_.bad.size()) >= options_.stop_after) return;
        }
    }

private:
    // Splits the row at `at` into cells; returns where the next one starts.
    const char* row(Scanner& scanner, const char* at, const char* end) {
        const char delimiter = options_.dialect.delimiter;
        Scanner::Place place = scanner.place();
        std::size_t count = 0;
        while (true) {
            const char* stop = scanner.next(place);
            if (stop != end && *stop == delimiter) {
                if (count == cells_.size()) cells_.resize(2 * count + 16);
                cells_[count++] = {at, static_cast<std::size_t>(stop - at)};
                at = stop + 1;
                continue;
            }
            scanner.keep(place);
            count_ = count;
            stop = other_cell(scanner, at, stop, end);
            if (stop == end) return end;
            at = stop + 1;
            if (*stop != delimiter) return at;
            place = scanner.place();
            count = count_;
        }
    }

    // The cell at `at` that ends a row, or has a quote at `stop`; returns the delimiter or line end after it.
    const char* other_cell(Scanner& scanner, const char* at, const char* stop, const char* end) {
        const char quote = options_.dialect.quote;
        if (stop != end && *stop == quote && quote) {
            if (stop == at) return quoted(scanner, at, end);
            do stop = scanner.next();
            while (stop != end && *stop == quote);
        }
        add(at, without_cr(at, stop, end));
        return stop;
    }

    static const char* without_cr(const char* at, const char* stop, const char* end) {
        const bool last = stop == end || *stop == '\n';
        return last && stop != at && stop[-1] == '\r' ? stop - 1 : stop;
    }

    void add(const char* begin, const char* end) {
        if (count_ == cells_.size()) cells_.resize(2 * count_ + 16);
        cells_[count_++] = {begin, static_cast<std::size_t>(end - begin)};
    }

    // The cell in quotes that opens at `at`; returns the delimiter or line end after it.
    const char* quoted(Scanner& scanner, const char* at, const char* end) {
        const char delimiter = options_.dialect.delimiter, quote = options_.dialect.quote;
        const char* const begin = at + 1;
        bool doubled = false;
        const char* stop = scanner.next();
        while (true) {
            if (stop == end) {
                break_rule(Rule::unclosed, at, 1);
                add(begin, end);
                return end;
            }
            if (*stop == '\n') ++quoted_lines_;
            if (*stop == quote) {
                const char* const following = scanner.next();
                if (following == stop + 1 && following != end && *following == quote) {
                    doubled = true;
                    stop = scanner.next();
                    continue;
                }
                if (doubled) {
                    add_unescaped(begin, stop, quote);
                } else {
                    add(begin, stop);
                }
                const char* after = stop + 1;
                if (after != end && *after == '\r' && (after + 1 == end || after[1] == '\n')) ++after;
                if (after == following || (following == end && after == end)) return following;
                break_rule(Rule::after_quote, stop + 1, 16);
                for (stop = following; stop != end && *stop != delimiter && *stop != '\n';) stop = scanner.next();
                return stop;
            }
            stop = scanner.next();
        }
    }

    void add_unescaped(const char* at, const char* end, char quote) {
        char* const text = sink_.arena().allocate(static_cast<std::size_t>(end - at));
        char* to = text;
        while (at != end) {
            *to++ = *at;
            at += *at == quote ? 2 : 1;
        }
        add(text, to);
    }

    void break_rule(Rule rule, const char* place, std::ptrdiff_t shown) {
        if (fault_) return;
        fault_ = static_cast<int>(rule);
        place_ = place;
        shown_ = shown;
    }

    void finish(std::int64_t line, std::size_t width, const char* end) {
        if (suspicious_) {
            const char* const nul = static_cast<const char*>(std::memchr(row_, 0, static_cast<std::size_t>(end - row_)));
            const char* const invalid = first_invalid_utf8(row_, end);
            if (nul) break_rule(Rule::nul, nul, 1);
            if (invalid != end) break_rule(Rule::utf8, invalid, 4);
        }
        if (!fault_ && width != columns_.size()) break_rule(Rule::ragged, row_, 0);
        if (fault_) {
            sink_.drop_row();
            const std::size_t shown = static_cast<std::size_t>(std::min<std::ptrdiff_t>(shown_, end - place_));
            std::string token(place_, shown);
            if (fault_ == static_cast<int>(Rule::ragged))
                token = std::to_string(width) + " " + std::to_string(columns_.size());
            rows_.bad.push_back({line, place_ - row_ + 1, fault_, std::move(token)});
            return;
        }
        if (text_end_ - end >= static_cast<std::ptrdiff_t>(features::Names::READABLE)) {
            sink_.texts(columns_.data(), cells_.data(), width);
        } else {
            for (std::size_t i = 0; i < width; ++i) {
                if (columns_[i] >= 0) sink_.text(columns_[i], cells_[i]);
            }
        }
        if constexpr (Sink::KEEPS_ROWS) sink_.row(row_, end);
        std::int64_t column = 1;
        if (sink_.failed()) {
            const char* const place = sink_.failed_at();
            if (place >= row_ && place < end) column = place - row_ + 1;
        }
        sink_.end_row(line, 1, column);
    }

    Sink& sink_;
    const std::vector<int>& columns_;
    Options options_;
    ParsedRows& rows_;
    std::vector<std::string_view> cells_;
    std::size_t count_ = 0;  // of the current row
    const char* text_end_ = nullptr;
    // The current row.
    bool suspicious_ = false;  // whether it may have a NUL or invalid UTF-8
    const char* row_ = nullptr;
    std::int64_t quoted_lines_ = 0;
    int fault_ = 0;
    const char* place_ = nullptr;
    std::ptrdiff_t shown_ = 0;
};

}  // namespace rarestream::csv
