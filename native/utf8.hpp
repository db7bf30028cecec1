// Validity of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rarestream {

// Where the first byte is that is not part of a valid character; `end` if there is none.
inline const char* first_invalid_utf8(const char* at, const char* end) {
    while (at != end) {
        for (; end - at >= 64; at += 64) {
            typedef std::uint64_t TwoWords __attribute__((vector_size(16)));
            TwoWords words[4];
            std::memcpy(words, at, sizeof words);
            const TwoWords all = (words[0] | words[1]) | (words[2] | words[3]);
            if ((all[0] | all[1]) & 0x8080808080808080ull) break;
        }
        if (at == end) break;
        const unsigned char c = static_cast<unsigned char>(*at);
        if (c < 0x80) {
            ++at;
            continue;
        }
        const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC2 || c > 0xF4 || end - at <= more) return at;
        const unsigned char next = static_cast<unsigned char>(at[1]);
        const unsigned char low = c == 0xE0   ? 0xA0
                                  : c == 0xF0 ? 0x90
                                              : 0x80,
                            high = c == 0xED   ? 0x9F
                                   : c == 0xF4 ? 0x8F
                                               : 0xBF;
        if (next < low || next > high) return at;
        for (int i = 2; i <= more; ++i) {
            if ((static_cast<unsigned char>(at[i]) & 0xC0) != 0x80) return at;
        }
        at += more + 1;
    }
    return end;
}

}  // namespace rarestream
