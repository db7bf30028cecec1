// Lines of  label <tab> free text  to rows of a table with two columns. Lines end in LF or CR LF; blank lines are skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "parsed_rows.hpp"
#include "utf8.hpp"

namespace rarestream::text {

enum class Rule : int {  // beyond those of features::TableRule; the messages are in readers/formats/text.py
    tab = 20,
    nul = 22,
    utf8 = 23,
};

// `Sink` is a TableEncoder; `label` and `words` are its numbers of the two columns. The text consists of whole lines; the
// last line end may be missing. Parsing stops after so many bad rows.
template <class Sink>
void parse(const char* text, std::size_t size, Sink& sink, int label, int words, std::int64_t stop_after,
           ParsedRows& rows) {
    const char* const end = text + size;
    for (const char* line = text; line != end && static_cast<std::int64_t>(rows.bad.size()) < stop_after;) {
        const char* stop = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)));
        const char* const next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop != line && stop[-1] == '\r') --stop;
        const char* const begin = std::exchange(line, next);
        const std::size_t length = static_cast<std::size_t>(stop - begin);
        ++rows.lines_read;
        if (length == 0) continue;
        const auto reject = [&](Rule rule, const char* place, std::ptrdiff_t shown) {
            std::string token(place, static_cast<std::size_t>(std::min(shown, stop - place)));
            rows.bad.push_back({rows.lines_read, place - begin + 1, static_cast<int>(rule), std::move(token)});
        };
        const char* const tab = static_cast<const char*>(std::memchr(begin, '\t', length));
        if (const void* nul = std::memchr(begin, 0, length)) {
            reject(Rule::nul, static_cast<const char*>(nul), 1);
        } else if (const char* invalid = first_invalid_utf8(begin, stop); invalid != stop) {
            reject(Rule::utf8, invalid, 4);
        } else if (!tab) {
            reject(Rule::tab, begin, LONGEST_TOKEN);
        } else {
            sink.begin_row();
            sink.text(label, {begin, static_cast<std::size_t>(tab - begin)});
            sink.text(words, {tab + 1, static_cast<std::size_t>(stop - tab - 1)});
            sink.end_row(rows.lines_read, 1, 1);
        }
    }
}

}  // namespace rarestream::text
