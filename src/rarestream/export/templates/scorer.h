// A model that scores rows: @about@
//
// Written by `rarestream export`. C99 or C++11, only the standard library (link with -lm). All functions are static: include
// the file where it is needed.
//
// begin columns
//   int32_t indices[] = {3, 17};  // features, counted from 0, in ascending order
//   float values[] = {1.0f, 0.5f};
//   double score = NAME_score(indices, values, 2);
// end columns
// begin hashed
//   NAME_row row = {0};
@example@
//   double score = NAME_row_score(&row);  // NAN if a value breaks a rule or memory is short; the row is empty again
//   NAME_row_free(&row);
// end hashed
//
// A larger score means more likely positive. It is the sum of weight times value over the features of a row. Before that,
// the row is scaled: @scale_rule@.
// Features without a weight count in the scaling only.
// begin probability
// NAME_probability(score) is the probability that a row of that score is positive.
// end probability
#ifndef @guard@
#define @guard@

#include <math.h>
#include <stddef.h>
#include <stdint.h>
// begin hashed
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// end hashed

#if defined(__GNUC__)
#define NAME_FUNCTION static inline __attribute__((unused))
#else
#define NAME_FUNCTION static inline
#endif

// ---- The model

// Features in ascending order, and the weight of each.
#define NAME_FEATURES @count@
static const int32_t NAME_index[] = {
@index@
};
static const @real@ NAME_weight[] = {
@weight@
};
// begin max
// The largest absolute value of each feature.
static const float NAME_largest[] = {
@largest@
};
// end max

// ---- Scoring

// The place of a feature in NAME_index, or -1.
NAME_FUNCTION int32_t NAME_find(int32_t index) {
    int32_t low = 0, high = NAME_FEATURES - 1;
    while (low <= high) {
        const int32_t middle = low + (high - low) / 2;
        if (NAME_index[middle] == index) return middle;
        if (NAME_index[middle] < index) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return -1;
}

// Adds a feature to the sums of a row.
NAME_FUNCTION void NAME_add(int32_t index, double total, double* sum, double* squares) {
    const int32_t place = NAME_find(index);
    double value = (float)total;
// begin max
    {
        double largest = place < 0 ? 0 : NAME_largest[place];
        if (fabs(value) > largest) largest = fabs(value);
        value = largest > 0 ? value / largest : 0;
    }
// end max
    if (place >= 0) *sum += NAME_weight[place] * value;
    *squares += value * value;
}

NAME_FUNCTION double NAME_scaled(double sum, double squares) {
// begin none
    (void)squares;
    return sum;
// end none
// begin norm
    return squares > 0 ? sum / sqrt(squares) : 0;
// end norm
}

// The score of a row with n features. The values of equal indices are added if they are neighbours, as they are when the
// indices ascend.
NAME_FUNCTION double NAME_score(const int32_t* indices, const float* values, int n) {
    double sum = 0, squares = 0;
    int i = 0;
    while (i < n) {
        const int32_t index = indices[i];
        double total = 0;
        for (; i < n && indices[i] == index; ++i) total += values[i];
        NAME_add(index, total, &sum, &squares);
    }
    return NAME_scaled(sum, squares);
}
// begin probability

// The probability that a row of this score is positive.
NAME_FUNCTION double NAME_probability(double score) { return 1 / (1 + exp(-(@slope@ * score + @intercept@))); }
// end probability
// begin hashed

// ---- Names to slots

NAME_FUNCTION uint32_t NAME_scrambled(uint32_t block) {
    block *= 0xcc9e2d51u;
    return (block << 15 | block >> 17) * 0x1b873593u;
}

// MurmurHash3_x86_32.
NAME_FUNCTION uint32_t NAME_murmur3(const char* text, size_t size, uint32_t seed) {
    const unsigned char* at = (const unsigned char*)text;
    uint32_t h = seed, rest = 0;
    size_t i;
    for (i = 0; i + 4 <= size; i += 4, at += 4) {
        h ^= NAME_scrambled((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
    for (i = size % 4; i-- > 0;) rest = rest << 8 | at[i];
    h ^= NAME_scrambled(rest);
    h ^= (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

#define NAME_BITS @bits@

// The slot of a feature, its index for NAME_score: murmur3(name, seed = murmur3(space, seed = 0)) modulo 2^NAME_BITS, of
// their UTF-8 bytes. The space is a column, mostly.
NAME_FUNCTION int32_t NAME_slot(const char* space, const char* name) {
    const uint32_t seed = NAME_murmur3(space, strlen(space), 0);
    return (int32_t)(NAME_murmur3(name, strlen(name), seed) & ((1u << NAME_BITS) - 1));
}

// ---- Rows with names of columns: what a cell becomes is decided by the plan of its column

enum { NAME_CATEGORY = 1, NAME_NUMBER = 2, NAME_TEXT = 4, NAME_DATE = 8, NAME_AUTO = 16 };  // kinds, added up

typedef struct {
    const char* name;
    int kinds;    // 0: it is no feature
    int crossed;  // whether it is part of a cross
} NAME_column;

typedef struct {
    const char* name;
    int columns[8];  // places in NAME_columns; -1 after the last
} NAME_cross;

#define NAME_OPEN @open@        // whether other columns are features, too
#define NAME_RAW @raw@         // numbers as they are; else in soft buckets
#define NAME_COUNTS @counts@      // whether equal words of a text, and equal elements of a list, are counted
#define NAME_CHARACTERS @characters@  // a text is split into characters; else into words
#define NAME_SHORTEST @shortest@    // n-grams of these sizes
#define NAME_LONGEST @longest@

static const NAME_column NAME_columns[] = {
@columns@    {0, 0, 0},
};
static const NAME_cross NAME_crosses[] = {
@crosses@    {0, {-1}},
};
static const char* const NAME_missing[] = {@missing@0};  // texts that stand for a missing value

typedef struct {
    int32_t slot;
    uint32_t place;  // features of the same slot are added in their order
    float value;
} NAME_feature;

typedef struct {
    int column;
    size_t start, size;  // of the name, in `text`
    float value;
} NAME_part;

// The features of a row. It starts as {0}, and may be used for one row after the other.
typedef struct {
    NAME_feature* features;
    size_t size, room;
    NAME_part* parts;  // of crosses
    size_t parts_size, parts_room;
    char* text;  // names of parts, and text in lower case
    size_t text_size, text_room;
    uint32_t* seen;  // hashes of words and elements that count once
    size_t seen_size, seen_room;
    int failed;
} NAME_row;

NAME_FUNCTION void NAME_row_clear(NAME_row* row) {
    row->size = row->parts_size = row->text_size = row->seen_size = 0;
    row->failed = 0;
}

NAME_FUNCTION void NAME_row_free(NAME_row* row) {
    free(row->features);
    free(row->parts);
    free(row->text);
    free(row->seen);
    memset(row, 0, sizeof *row);
}

// Makes room for more elements of an array. 0: memory is short.
NAME_FUNCTION void* NAME_more(NAME_row* row, void* array, size_t size, size_t* room, size_t element) {
    void* grown;
    if (size <= *room && array) return array;
    grown = realloc(array, 2 * size * element + 64);
    if (!grown) {
        row->failed = 1;
        return 0;
    }
    *room = (2 * size * element + 64) / element;
    return grown;
}

NAME_FUNCTION void NAME_put(NAME_row* row, uint32_t hash, float value) {
    NAME_feature* const grown =
        (NAME_feature*)NAME_more(row, row->features, row->size + 1, &row->room, sizeof(NAME_feature));
    if (!grown) return;
    row->features = grown;
    grown[row->size].slot = (int32_t)(hash & ((1u << NAME_BITS) - 1));
    grown[row->size].place = (uint32_t)row->size;
    grown[row->size++].value = value;
    if (!isfinite(value)) row->failed = 1;
}

// Any feature: a name in a namespace, and its value.
NAME_FUNCTION void NAME_row_feature(NAME_row* row, const char* space, const char* name, float value) {
    NAME_put(row, (uint32_t)NAME_slot(space, name), value);
}

// Makes room for more text, which may move it. 0: memory is short.
NAME_FUNCTION int NAME_reserve(NAME_row* row, size_t size) {
    char* const grown = (char*)NAME_more(row, row->text, row->text_size + size + 1, &row->text_room, 1);
    if (grown) row->text = grown;
    return grown != 0;
}

// Copies text to the end of `text`; where it starts there.
NAME_FUNCTION size_t NAME_keep(NAME_row* row, const char* text, size_t size) {
    const size_t start = row->text_size;
    if (!NAME_reserve(row, size)) return 0;
    memcpy(row->text + start, text, size);
    row->text_size += size;
    return start;
}

// What crosses need of a feature, if its column is part of one. Its name is in `text`.
NAME_FUNCTION void NAME_put_part(NAME_row* row, int column, size_t start, size_t size, float value) {
    NAME_part* grown;
    if (column < 0 || !NAME_columns[column].crossed || row->failed) return;
    grown = (NAME_part*)NAME_more(row, row->parts, row->parts_size + 1, &row->parts_room, sizeof(NAME_part));
    if (!grown) return;
    row->parts = grown;
    grown[row->parts_size].column = column;
    grown[row->parts_size].start = start;
    grown[row->parts_size].size = size;
    grown[row->parts_size++].value = value;
}

// A feature of a column; `part`: it takes part in crosses.
NAME_FUNCTION void NAME_cell(NAME_row* row, const char* space, int column, const char* name, size_t size, float value,
                             int part) {
    NAME_put(row, NAME_murmur3(name, size, NAME_murmur3(space, strlen(space), 0)), value);
    if (part && column >= 0 && NAME_columns[column].crossed) {
        NAME_put_part(row, column, NAME_keep(row, name, size), size, value);
    }
}

// The place of a column in NAME_columns, or -1, and its kinds.
NAME_FUNCTION int NAME_kinds(const char* column, int* place) {
    int c;
    for (c = 0; NAME_columns[c].name; ++c) {
        if (strcmp(NAME_columns[c].name, column) == 0) {
            *place = c;
            return NAME_columns[c].kinds;
        }
    }
    *place = -1;
    return NAME_OPEN ? NAME_AUTO : 0;
}

NAME_FUNCTION int NAME_is_missing(const char* text) {
    int i;
    if (!text || !*text) return 1;
    for (i = 0; NAME_missing[i]; ++i) {
        if (strcmp(NAME_missing[i], text) == 0) return 1;
    }
    return 0;
}

// A number other than 0 in two soft buckets: with u = 2 log2 |x|, the whole part of u, and the rest in `share`.
NAME_FUNCTION int NAME_bucket(double x, double* share) {
    int exponent, i, upper;
    double m = 2 * frexp(fabs(x), &exponent), f, g, p, t;  // 1 <= m < 2
    upper = m >= 1.4142135623730951;
    if (upper) m *= 0.5;
    f = (m - 1) / (m + 1);
    g = f * f;  // log m = 2 artanh f
    p = 1.0 / 21;
    for (i = 19; i >= 1; i -= 2) p = p * g + 1.0 / i;
    t = 2 * (2 * f * p * 1.4426950408889634) + upper;
    *share = t < 0 ? 0 : t >= 1 ? 0.99999999999999989 : t;
    return 2 * (exponent - 1) + upper;
}

NAME_FUNCTION void NAME_put_bucket(NAME_row* row, const char* space, int column, double x, int k, float value, int part) {
    char name[32];
    const int size = snprintf(name, sizeof name, "~%s2^%s%d%s", x < 0 ? "-" : "", k < 0 ? "-" : "", abs(k) / 2,
                              k % 2 ? ".5" : "");
    if (value != 0) NAME_cell(row, space, column, name, (size_t)size, value, part);
}

NAME_FUNCTION void NAME_numbers(NAME_row* row, const char* space, int column, double x, int part) {
    if (NAME_RAW) {
        if ((float)x != 0) NAME_cell(row, space, column, "", 0, (float)x, part);
    } else if (x == 0) {
        NAME_cell(row, space, column, "~0", 2, 1, part);
    } else {
        double share;
        const int k = NAME_bucket(x, &share);
        NAME_put_bucket(row, space, column, x, k, (float)(1 - share), part);
        NAME_put_bucket(row, space, column, x, k + 1, (float)share, part);
    }
}

// A number of a column of numbers. `digits` are those of a whole number, else 0.
NAME_FUNCTION void NAME_number_found(NAME_row* row, const char* space, int column, int kinds, double x, const char* digits,
                                     size_t size) {
    const int both = digits && kinds & (NAME_CATEGORY | NAME_AUTO);  // a whole number may be a category, too
    if (both) NAME_cell(row, space, column, digits, size, 1, 1);
    if (!both || kinds & (NAME_NUMBER | NAME_AUTO)) NAME_numbers(row, space, column, x, !both);
}

NAME_FUNCTION int NAME_is_digit(char c) { return c >= '0' && c <= '9'; }

// What text is as a number. 0: it is none; 2: it is a whole one, whose digits start at `digits`.
NAME_FUNCTION int NAME_parse(const char* text, double* x, const char** digits, size_t* size) {
    const char* const first = text + (*text == '-');
    const char* at = first;
    char* end;
    while (NAME_is_digit(*at) && at - first < 18) ++at;
    if (at > first && (at == first + 1 || *first != '0')) {
        const char* rest = at;
        if (*rest == '.') {
            ++rest;
            while (*rest == '0') ++rest;
        }
        if (!*rest) {
            *x = strtod(text, &end) + 0.0;
            *digits = *first == '0' ? first : text;
            *size = (size_t)(at - *digits);
            return 2;
        }
    }
    if (at > first + 1 && *first == '0' && !*at) return 0;  // 007 is an id
    for (at = text; *at; ++at) {  // strtod also takes hexadecimal numbers, blanks, inf and nan
        if (!NAME_is_digit(*at) && !strchr("+-.eE", *at)) return 0;
    }
    *x = strtod(text, &end);
    return *text && !*end && isfinite(*x);
}

// The digits of a number as a category is named: the shortest that give it again.
NAME_FUNCTION int NAME_spelled(double x, char* text, size_t room) {
    const int fixed = fabs(x) >= 1e-4 && fabs(x) < 1e16;
    int precision;
    if (fabs(x) < 9007199254740992.0 && x == floor(x)) return snprintf(text, room, "%lld", (long long)x);
    for (precision = 0; precision < 17; ++precision) {
        char* last;
        snprintf(text, room, "%.*e", precision, x);
        if (strtod(text, 0) == x) break;
        last = strchr(text, 'e') - 1;
        if (*last == '9') continue;
        ++*last;  // of a few powers of two, the next digits are nearer than they seem
        if (strtod(text, 0) == x) break;
    }
    if (fixed) {
        const int exponent = atoi(strchr(text, 'e') + 1);
        return snprintf(text, room, "%.*f", precision > exponent ? precision - exponent : 0, x);
    }
    return (int)strlen(text);
}

// A word or an element counts once in a cell, unless counts are wanted.
NAME_FUNCTION void NAME_once(NAME_row* row, const char* space, int column, size_t start, size_t size) {
    const uint32_t hash = NAME_murmur3(row->text + start, size, NAME_murmur3(space, strlen(space), 0));
    uint32_t* grown;
    size_t i;
    for (i = 0; i < row->seen_size; ++i) {
        if (row->seen[i] == hash) {
            if (NAME_COUNTS) NAME_put(row, hash, 1);
            return;
        }
    }
    grown = (uint32_t*)NAME_more(row, row->seen, row->seen_size + 1, &row->seen_room, sizeof(uint32_t));
    if (!grown) return;
    row->seen = grown;
    grown[row->seen_size++] = hash;
    NAME_put(row, hash, 1);
    NAME_put_part(row, column, start, size, 1);
}

// N-grams of words, or of characters, of a text in lower case whose words are one space apart.
NAME_FUNCTION void NAME_tokens(NAME_row* row, const char* space, int column, const char* text) {
    const size_t begin = NAME_keep(row, "", 0);
    size_t i, end;
    int inside = 0;
    for (; *text && !row->failed; ++text) {
        const unsigned char byte = (unsigned char)*text;
        const int letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
        const char lower = letter ? (char)(byte | 0x20) : *text;
        if (NAME_CHARACTERS ? byte <= ' ' : !(letter || byte >= 0x80 || NAME_is_digit(*text))) {
            inside = 0;
            continue;
        }
        if (!inside && row->text_size > begin) NAME_keep(row, " ", 1);
        NAME_keep(row, &lower, 1);
        inside = 1;
    }
    end = row->text_size;
    for (i = begin; i < end && !row->failed; ++i) {
        const int starts = NAME_CHARACTERS ? ((unsigned char)row->text[i] & 0xC0) != 0x80
                                           : i == begin || row->text[i - 1] == ' ';
        size_t stop = i;
        int n;
        if (!starts) continue;
        for (n = 1; n <= NAME_LONGEST && stop < end; ++n) {
            ++stop;  // to the end of a character, or of a word
            while (stop < end && (NAME_CHARACTERS ? ((unsigned char)row->text[stop] & 0xC0) == 0x80 : row->text[stop] != ' ')) {
                ++stop;
            }
            if (n >= NAME_SHORTEST) NAME_once(row, space, column, i, stop - i);
        }
    }
}

// Days since 1 January 1970.
NAME_FUNCTION long NAME_days(int year, int month, int day) {
    const long y = month <= 2 ? year - 1 : year;
    const long era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    const long of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

NAME_FUNCTION int NAME_two(const char* at) {
    return NAME_is_digit(at[0]) && NAME_is_digit(at[1]) ? 10 * (at[0] - '0') + at[1] - '0' : -1;
}

// Hour, weekday and month of YYYY-MM-DD[(T| )HH:MM[:SS[.f]]][Z|+hh:mm], in UTC. 0: the text is no date.
NAME_FUNCTION int NAME_date(NAME_row* row, const char* space, int column, const char* text) {
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const char* at = text;
    long seconds, days;
    int century, year, month, day, hour = 0, minute = 0, second = 0, offset = 0, timed, size;
    char name[16];
    if (strlen(text) < 10) return 0;
    century = NAME_two(text);
    year = NAME_two(text + 2);
    month = NAME_two(text + 5);
    day = NAME_two(text + 8);
    if (century < 0 || year < 0 || text[4] != '-' || text[7] != '-' || month < 1 || month > 12 || day < 1) return 0;
    year += 100 * century;
    if (day > lengths[month - 1]) return 0;
    if (month == 2 && day == 29 && (year % 4 != 0 || (year % 100 == 0 && year % 400 != 0))) return 0;
    at += 10;
    timed = *at == 'T' || *at == ' ';
    if (timed) {
        ++at;
        if (strlen(at) < 5) return 0;
        hour = NAME_two(at);
        minute = NAME_two(at + 3);
        if (hour < 0 || hour > 23 || at[2] != ':' || minute < 0 || minute > 59) return 0;
        at += 5;
        if (*at == ':') {
            second = NAME_two(at + 1);
            if (second < 0 || second > 60) return 0;
            at += 3;
            if (*at == '.' || *at == ',') {
                if (!NAME_is_digit(*++at)) return 0;
                while (NAME_is_digit(*at)) ++at;
            }
        }
        if (*at == 'Z') {
            ++at;
        } else if (*at == '+' || *at == '-') {
            const int direction = *at++ == '+' ? 1 : -1;
            int hours = NAME_two(at), minutes = 0;
            if (hours < 0) return 0;
            at += 2;
            if (*at) {
                at += *at == ':';
                minutes = NAME_two(at);
                if (minutes < 0) return 0;
                at += 2;
            }
            offset = direction * (hours * 3600 + minutes * 60);
        }
    }
    if (*at) return 0;
    seconds = hour * 3600L + minute * 60 + second - offset;
    days = NAME_days(year, month, day);
    for (; seconds < 0; seconds += 86400) --days;
    for (; seconds >= 86400; seconds -= 86400) ++days;
    if (offset || second == 60) {  // it may be another day, of another month
        int m;
        for (m = -1; m <= 1; ++m) {
            const int other = month + m < 1 ? 12 : month + m > 12 ? 1 : month + m, y = year + (month + m - other) / 12;
            const long first = NAME_days(y, other, 1), next = NAME_days(other == 12 ? y + 1 : y, other % 12 + 1, 1);
            if (days >= first && days < next) {
                month = other;
                break;
            }
        }
    }
    if (timed) {
        size = snprintf(name, sizeof name, "hour=%d", (int)(seconds / 3600));
        NAME_cell(row, space, column, name, (size_t)size, 1, 1);
    }
    size = snprintf(name, sizeof name, "weekday=%d", (int)(((days + 3) % 7 + 7) % 7));  // 0: Monday
    NAME_cell(row, space, column, name, (size_t)size, 1, 1);
    size = snprintf(name, sizeof name, "month=%d", month);
    NAME_cell(row, space, column, name, (size_t)size, 1, 1);
    return 1;
}

// A cell of text, in UTF-8, by the plan of its column: a category, a text, a date, or a number in a column of numbers. None
// at all, or empty text, is missing.
NAME_FUNCTION void NAME_row_text(NAME_row* row, const char* column, const char* text) {
    int place;
    const int kinds = NAME_kinds(column, &place);
    if (!kinds || NAME_is_missing(text)) return;
    if (kinds == NAME_CATEGORY || kinds & NAME_AUTO) {
        NAME_cell(row, column, place, text, strlen(text), 1, 1);
    } else if (kinds & NAME_TEXT) {
        row->seen_size = 0;
        NAME_tokens(row, column, place, text);
    } else if (kinds & NAME_DATE) {
        if (!NAME_date(row, column, place, text)) row->failed = 1;
    } else {
        const char* digits = 0;
        size_t size = 0;
        double x = 0;
        if (!NAME_parse(text, &x, &digits, &size)) {
            row->failed = 1;
        } else {
            NAME_number_found(row, column, place, kinds, x, digits, size);
        }
    }
}

// A number, by the plan of its column. NAN is missing.
NAME_FUNCTION void NAME_row_number(NAME_row* row, const char* column, double x) {
    char text[64];
    int place, whole, size;
    const int kinds = NAME_kinds(column, &place);
    if (!kinds || isnan(x)) return;
    if (!isfinite(x)) {
        row->failed = 1;
        return;
    }
    size = NAME_spelled(x, text, sizeof text);
    if (NAME_is_missing(text)) return;
    whole = fabs(x) < 9007199254740992.0 && x == floor(x);
    if (kinds != NAME_CATEGORY && !(kinds & (NAME_TEXT | NAME_DATE))) {
        NAME_number_found(row, column, place, kinds, x, whole ? text : 0, (size_t)size);
    } else {
        NAME_row_text(row, column, text);
    }
}

// true or false.
NAME_FUNCTION void NAME_row_bool(NAME_row* row, const char* column, int value) {
    NAME_row_text(row, column, value ? "true" : "false");
}

// A list of n texts.
NAME_FUNCTION void NAME_row_list(NAME_row* row, const char* column, const char* const* texts, int n) {
    int place, i;
    const int kinds = NAME_kinds(column, &place);
    row->seen_size = 0;
    if (!kinds) return;
    for (i = 0; i < n && !row->failed; ++i) {
        if (NAME_is_missing(texts[i])) continue;
        if (kinds & NAME_TEXT) {
            NAME_tokens(row, column, place, texts[i]);
        } else {
            const size_t size = strlen(texts[i]), start = NAME_keep(row, texts[i], size);
            if (!row->failed) NAME_once(row, column, place, start, size);
        }
    }
}

// The features of a cross from its column number `depth` on; before it, the names from `start` on and the value are given.
NAME_FUNCTION void NAME_product(NAME_row* row, const NAME_cross* cross, int depth, size_t start, float value, int* left) {
    const int column = depth < 8 ? cross->columns[depth] : -1;
    const size_t end = row->text_size;
    size_t i;
    if (column < 0) {
        const uint32_t seed = NAME_murmur3(cross->name, strlen(cross->name), 0);
        if (--*left < 0) row->failed = 1;
        if (!row->failed) NAME_put(row, NAME_murmur3(row->text + start, end - start, seed), value);
        return;
    }
    for (i = 0; i < row->parts_size && !row->failed; ++i) {
        if (row->parts[i].column != column) continue;
        if (depth) NAME_keep(row, "\x1f", 1);
        if (!NAME_reserve(row, row->parts[i].size)) return;
        NAME_keep(row, row->text + row->parts[i].start, row->parts[i].size);
        NAME_product(row, cross, depth + 1, start, value * row->parts[i].value, left);
        row->text_size = end;
    }
}

NAME_FUNCTION int NAME_compare(const void* a, const void* b) {
    const NAME_feature* const x = (const NAME_feature*)a;
    const NAME_feature* const y = (const NAME_feature*)b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

// The score of a row; NAN if one of its values breaks a rule, or memory is short. The row is empty then.
NAME_FUNCTION double NAME_row_score(NAME_row* row) {
    double sum = 0, squares = 0;
    size_t i = 0;
    int c, failed;
    for (c = 0; NAME_crosses[c].name && !row->failed; ++c) {
        int left = 65536;  // features of one cross
        NAME_product(row, &NAME_crosses[c], 0, row->text_size, 1, &left);
    }
    if (row->size) qsort(row->features, row->size, sizeof(NAME_feature), NAME_compare);
    while (i < row->size) {
        const int32_t slot = row->features[i].slot;
        double total = 0;
        for (; i < row->size && row->features[i].slot == slot; ++i) total += row->features[i].value;
        NAME_add(slot, total, &sum, &squares);
    }
    failed = row->failed;
    NAME_row_clear(row);
    return failed || !isfinite(sum) ? NAN : NAME_scaled(sum, squares);
}
// end hashed

#endif
