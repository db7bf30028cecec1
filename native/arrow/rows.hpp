// The rows of an Arrow record batch to hashed features.
//
//     boolean                 true or false, a category          list of values          each a category
//     integer, float, decimal a number; NaN is missing           struct, map             entries; the path is the namespace
//     text, bytes             text, which must be valid UTF-8    dictionary, run ends    as the values they stand for
//     date, timestamp         a date, in UTC if it has a zone    time                    text, 13:05:59
//     duration                a number, in seconds               null                    missing
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arrow/array.hpp"
#include "arrow/values.hpp"
#include "features/table.hpp"
#include "parsed_rows.hpp"

namespace rarestream::arrow {

using features::NumberText;
using features::TableRule;

// The digits of a float: the shortest that give the same float again, so that 0.1 is called 0.1.
class FloatText {
public:
    explicit FloatText(float value) {
        const float size = std::fabs(value);
        const bool fixed = size == 0 || (size >= 1e-4F && size < 1e16F);
        end_ = std::to_chars(buffer_, buffer_ + sizeof buffer_, value,
                             fixed ? std::chars_format::fixed : std::chars_format::scientific)
                   .ptr;
    }

    std::string_view text() const { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

private:
    char buffer_[48];
    char* end_;
};

inline bool is_whole(double value) { return std::fabs(value) < features::LARGEST_WHOLE && value == std::floor(value); }

// Values as text, for what is not a cell of its own: calls `use(text)`. NaN is missing.
template <class Sink, class Use>
class Spelled {
public:
    Spelled(Sink& sink, std::string_view field, const Use& use) : sink_(sink), field_(field), use_(use) {}

    void whole(std::int64_t value) { use_(NumberText(value).text()); }
    void whole(std::uint64_t value) { use_(NumberText(value).text()); }

    void number(double value) {
        if (std::isfinite(value)) return use_(NumberText(value).text());
        if (!std::isnan(value)) sink_.fail(TableRule::finite, field_, value > 0 ? "inf" : "-inf");
    }

    void number(float value) {
        if (is_whole(value) || !std::isfinite(value)) return number(static_cast<double>(value));
        use_(FloatText(value).text());
    }

    void boolean(bool value) { use_(value ? "true" : "false"); }
    void text(std::string_view text) { use_(text); }
    void made_text(std::string_view text) { use_(text); }
    void not_utf8(std::string_view text) { sink_.fail(TableRule::utf8, field_, text); }

    void decimal(std::string_view digits) {
        const features::NumberCell found = features::number_cell(digits);
        if (found.kind == features::CellKind::whole) return use_(found.digits);
        number(found.value);
    }

    void moment(const Moment& moment) {
        Spelling spelling;
        moment.spell(spelling);
        use_(spelling.text());
    }

    // Lists in lists, and what else has parts, are refused before.
    void list(const Array&, Slice) {}
    void structure(const Array&, std::int64_t) {}
    void map(const Array&, Slice) {}

private:
    Sink& sink_;
    std::string_view field_;
    const Use& use_;
};

// Calls `use` with the text of each value of a slice.
template <class Sink, class Use>
void spell_each(Sink& sink, std::string_view field, const Array& values, Slice slice, const Use& use) {
    Spelled<Sink, Use> each(sink, field, use);
    for (std::int64_t i = 0; i < slice.size; ++i) visit(values, slice.begin + i, each);
}

template <class Sink>
void entries_of_struct(Sink& sink, std::string_view path, std::uint32_t seed, const Array& array, std::int64_t at);
template <class Sink>
void entries_of_map(Sink& sink, std::string_view path, std::uint32_t seed, const Array& pairs, Slice slice);

// Entries of a struct or a map: the number or the text of a key, in the namespace of the path to it.
template <class Sink>
class Entry {
public:
    Entry(Sink& sink, std::string_view path, std::uint32_t seed, std::string_view key)
        : sink_(sink), path_(path), seed_(seed), key_(key) {}

    void whole(std::int64_t value) { number(static_cast<double>(value)); }
    void whole(std::uint64_t value) { number(static_cast<double>(value)); }
    void number(double value) { sink_.entry(path_, seed_, key_, value); }
    void number(float value) { number(static_cast<double>(value)); }
    void boolean(bool value) { text(value ? "true" : "false"); }
    void text(std::string_view text) { sink_.entry(path_, seed_, key_, text); }
    void made_text(std::string_view made) { text(made); }
    void not_utf8(std::string_view text) { sink_.fail(TableRule::utf8, path_, text); }
    void decimal(std::string_view digits) { number(features::number_cell(digits).value); }

    void moment(const Moment& moment) {
        Spelling spelling;
        moment.spell(spelling);
        text(spelling.text());
    }

    void list(const Array& elements, Slice slice) {
        spell_each(sink_, path_, elements, slice, [this](std::string_view element) { text(element); });
    }

    void structure(const Array& array, std::int64_t at) {
        const std::string path = below();
        entries_of_struct(sink_, path, features::murmur3(path, 0), array, at);
    }

    void map(const Array& pairs, Slice slice) {
        const std::string path = below();
        entries_of_map(sink_, path, features::murmur3(path, 0), pairs, slice);
    }

private:
    std::string below() const { return std::string(path_).append(1, '.').append(key_); }

    Sink& sink_;
    std::string_view path_;
    std::uint32_t seed_;
    std::string_view key_;
};

template <class Sink>
void entries_of_struct(Sink& sink, std::string_view path, std::uint32_t seed, const Array& array, std::int64_t at) {
    for (const Array& child : array.children) {
        Entry<Sink> entry(sink, path, seed, child.name);
        visit(child, at, entry);
    }
}

template <class Sink>
void entries_of_map(Sink& sink, std::string_view path, std::uint32_t seed, const Array& pairs, Slice slice) {
    for (std::int64_t i = 0; i < slice.size; ++i) {
        const std::int64_t at = pairs.offset + slice.begin + i;
        spell_each(sink, path, pairs.children[0], {at, 1}, [&](std::string_view key) {
            Entry<Sink> entry(sink, path, seed, key);
            visit(pairs.children[1], at, entry);
        });
    }
}

// A cell of a table.
template <class Sink>
class Cell {
public:
    Cell(Sink& sink, int c, std::string_view name, std::uint32_t seed) : sink_(sink), c_(c), name_(name), seed_(seed) {}

    void whole(std::int64_t value) { sink_.whole(c_, value); }
    void whole(std::uint64_t value) { sink_.whole(c_, value); }
    void number(double value) { sink_.number(c_, value); }

    void number(float value) {
        if (sink_.spells_numbers(c_) && std::isfinite(value) && !is_whole(value)) {
            return sink_.text(c_, sink_.arena().copy(FloatText(value).text()));
        }
        sink_.number(c_, static_cast<double>(value));
    }

    void boolean(bool value) { sink_.boolean(c_, value); }
    void text(std::string_view text) { sink_.string(c_, text); }
    void made_text(std::string_view text) { sink_.string(c_, sink_.arena().copy(text)); }
    void not_utf8(std::string_view text) { sink_.fail(TableRule::utf8, c_, text); }
    void decimal(std::string_view digits) { sink_.number_text(c_, sink_.arena().copy(digits)); }

    void moment(const Moment& moment) {
        if (sink_.splits_dates(c_)) return sink_.date(c_, moment.date(), {});
        Spelling spelling;
        moment.spell(spelling);
        sink_.date(c_, moment.date(), sink_.arena().copy(spelling.text()));
    }

    void list(const Array& elements, Slice slice) {
        sink_.begin_list(c_);
        spell_each(sink_, name_, elements, slice,
                   [this](std::string_view element) { sink_.element(c_, sink_.arena().copy(element)); });
    }

    void structure(const Array& array, std::int64_t at) {
        sink_.begin_map(c_);
        if (!sink_.failed()) entries_of_struct(sink_, name_, seed_, array, at);
    }

    void map(const Array& pairs, Slice slice) {
        sink_.begin_map(c_);
        if (!sink_.failed()) entries_of_map(sink_, name_, seed_, pairs, slice);
    }

private:
    Sink& sink_;
    int c_;
    std::string_view name_;
    std::uint32_t seed_;
};

// Calls the methods of `Sink`, a TableEncoder or a TableSurvey, for rows of a batch. `columns` has the sink's number of
// each column of the batch; -1: skipped.
template <class Sink>
class Rows {
public:
    Rows(Sink& sink, const ArrowSchema& schema, const ArrowArray& batch, const std::vector<int>& columns) : sink_(sink) {
        require(schema.n_children == batch.n_children && static_cast<std::size_t>(batch.n_children) == columns.size(),
                "the Arrow batch has other columns than its schema");
        offset_ = batch.offset;
        if (batch.null_count != 0 && batch.n_buffers > 0 && batch.buffers) {
            validity_ = static_cast<const std::uint8_t*>(batch.buffers[0]);
        }
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns[i] < 0 || sink.ignores(columns[i])) continue;
            const std::string name(name_of(*schema.children[i]));
            try {
                Array array = checked_array(*schema.children[i], *batch.children[i]);
                require(array.length >= batch.offset + batch.length, "a child of the Arrow array is too short");
                const std::uint32_t seed = features::murmur3(array.name, 0);
                columns_.push_back({std::move(array), columns[i], seed});
            } catch (const ArrowError& error) {
                throw ArrowError("column '" + name + "': " + error.what());
            }
        }
    }

    // Rows from `start` to `stop`, of a batch that has as many; the line of a row is its number from 0, counted from
    // `start`.
    void parse(std::int64_t start, std::int64_t stop, ParsedRows& rows, std::int64_t stop_after) {
        for (Column& column : columns_) prepare(column, offset_ + start, offset_ + stop);
        if constexpr (Sink::ENCODES) {
            sink_.reserve(static_cast<std::size_t>((stop - start) * features_));
        }
        const Column* current = nullptr;
        try {
            for (std::int64_t block = start, next; block < stop; block = next) {
                const std::int64_t end = next = std::min(stop, block + BLOCK);
                if constexpr (Sink::ENCODES) {
                    for (Column& column : columns_) {
                        current = &column;
                        look_ahead(column, offset_ + block, static_cast<int>(end - block));
                    }
                }
                for (std::int64_t row = block; row < next; ++row) {
                    sink_.begin_row();
                    const std::int64_t at = offset_ + row;
                    if (is_there(at)) {
                        for (Column& column : columns_) {
                            current = &column;
                            cell(column, at, static_cast<std::size_t>(row - block));
                        }
                    }
                    ++rows.lines_read;
                    if (!sink_.end_row(row - start, 0, 0)) {
                        forget(static_cast<std::size_t>(row - block), static_cast<std::size_t>(end - block));
                        next = row + 1;
                    }
                    if (static_cast<std::int64_t>(rows.bad.size()) >= stop_after) return;
                }
            }
        } catch (const ArrowError& error) {
            throw ArrowError("column '" + std::string(current->array.name) + "': " + error.what());
        }
    }

private:
    // Rows that are looked ahead: the same work on many cells of a column, and memory that is loaded before it is needed.
    static constexpr std::int64_t BLOCK = 128;

    enum class Way { visit, category, bucket };

    // A category of the block. `entry` is where its text is, or one of these.
    static constexpr std::int32_t MISSING = -1, AGAIN = -2;

    struct Category {
        std::uint32_t hash;
        std::int32_t entry;
    };

    // What is known of an entry of a dictionary.
    enum class State : std::uint32_t { unknown, again, missing, look };

    struct Known {
        std::uint32_t hash = 0;
        State state = State::unknown;
    };

    struct Column {
        Array array;
        int c;
        std::uint32_t seed;
        Way way = Way::visit;
        const Array* texts = nullptr;  // of categories: the dictionary or the array itself
        bool crossed = false;
        std::vector<Known> known = {};          // of each entry of the dictionary; empty: there is none, or it does not pay
        std::vector<Category> categories = {};  // of the block
        std::vector<features::SoftBucket> buckets = {};
    };

    void prepare(Column& column, std::int64_t start, std::int64_t stop) {
        Array& array = column.array;
        check_text(array, start, stop);
        features_ += 1;
        if constexpr (Sink::ENCODES) {
            const Type type = array.format.type;
            if (sink_.takes_buckets(column.c)) features_ += 1;
            if ((type == Type::float64 || type == Type::float32) && !array.dictionary && sink_.takes_buckets(column.c)) {
                column.way = Way::bucket;
                column.buckets.resize(BLOCK);
            }
            column.texts = array.dictionary ? array.dictionary.get() : &array;
            const bool texts = is_text(column.texts->format.type) && !column.texts->dictionary;
            if (texts && sink_.is_category(column.c) && stop < INT32_MAX && column.texts->length < INT32_MAX) {
                column.way = Way::category;
                column.categories.resize(BLOCK);
                column.crossed = sink_.is_crossed(column.c);
                // To forget what is known takes time too: a dictionary that is much longer than the rows does not pay.
                if (array.dictionary && array.dictionary->length <= 4 * (stop - start)) {
                    column.known.assign(static_cast<std::size_t>(array.dictionary->length), {});
                }
            }
        } else if (array.dictionary && is_text(array.dictionary->format.type) && !array.dictionary->dictionary) {
            column.way = Way::category;
            column.known.assign(static_cast<std::size_t>(array.dictionary->length), {});
        }
    }

    void look_ahead(Column& column, std::int64_t first, int count) {
        const Array& array = column.array;
        const std::int64_t at = array.offset + first;
        if (column.way == Way::bucket && array.format.type == Type::float64) {
            sink_.find_buckets(array.items<double>() + at, count, column.buckets.data());
        } else if (column.way == Way::bucket) {
            sink_.find_buckets(array.items<float>() + at, count, column.buckets.data());
        } else if (column.way == Way::category) {
            for (int i = 0; i < count; ++i) {
                const bool there = is_there(first + i);  // a row that is null must not be the first that has a category
                column.categories[static_cast<std::size_t>(i)] = there ? category(column, first + i) : Category{0, MISSING};
            }
        }
    }

    bool is_there(std::int64_t row) const { return !validity_ || validity_[row >> 3] >> (row & 7) & 1; }

    Category category(Column& column, std::int64_t i) {
        const Array& array = column.array;
        if (array.is_null(array.offset + i)) return {0, MISSING};
        const std::int64_t entry = array.dictionary ? dictionary_index(array, array.offset + i) : i;
        Known fresh;
        Known& known = column.known.empty() ? fresh : column.known[static_cast<std::size_t>(entry)];
        const bool first = known.state == State::unknown;
        if (first) known = looked_up(column, entry);
        if (known.state == State::missing) return {0, MISSING};
        if (known.state == State::again && !first) return {known.hash, AGAIN};
        sink_.expect_category(known.hash);
        return {known.hash, static_cast<std::int32_t>(entry)};
    }

    // A row is dropped, with the names that it has first: what was looked ahead from it on is forgotten.
    void forget(std::size_t first, std::size_t end) {
        for (Column& column : columns_) {
            if (column.known.empty()) continue;
            for (std::size_t i = first; i < end; ++i) {
                const std::int32_t entry = column.categories[i].entry;
                if (entry >= 0) column.known[static_cast<std::size_t>(entry)].state = State::unknown;
            }
        }
    }

    Known looked_up(const Column& column, std::int64_t entry) const {
        const Array& texts = *column.texts;
        if (texts.is_null(texts.offset + entry)) return {0, State::missing};
        const std::string_view text = text_at(texts, texts.offset + entry);
        Known found;
        if (!sink_.category_hash(column.c, text, found.hash)) return {0, State::missing};
        found.state = column.crossed || !is_valid(texts, text) ? State::look : State::again;
        return found;
    }

    void cell(Column& column, std::int64_t i, std::size_t in_block) {
        const Array& array = column.array;
        if constexpr (Sink::ENCODES) {
            if (column.way == Way::category) {
                const Category& found = column.categories[in_block];
                if (found.entry == AGAIN) return sink_.known_category(found.hash);
                if (found.entry == MISSING) return;
                const std::string_view text = text_at(*column.texts, column.texts->offset + found.entry);
                if (!is_valid(*column.texts, text)) return sink_.fail(TableRule::utf8, column.c, text);
                return sink_.first_category(column.c, found.hash, text);
            }
            if (column.way == Way::bucket) {
                const std::int64_t at = array.offset + i;
                if (array.is_null(at)) return;
                const double value = array.format.type == Type::float64 ? array.items<double>()[at]
                                                                        : static_cast<double>(array.items<float>()[at]);
                if (value == 0 || !std::isfinite(value)) return sink_.number(column.c, value);
                return sink_.bucketed(column.c, value < 0, column.buckets[in_block]);
            }
        }
        if constexpr (!Sink::ENCODES) {
            if (column.way == Way::category) return survey(column, i);
        }
        Cell<Sink> out(sink_, column.c, array.name, column.seed);
        visit(array, i, out);
    }

    // An entry of a dictionary of texts: what it is, is found out once.
    void survey(Column& column, std::int64_t i) {
        const Array& array = column.array;
        const Array& texts = *array.dictionary;
        if (array.is_null(array.offset + i)) return;
        const std::int64_t entry = dictionary_index(array, array.offset + i);
        Known& known = column.known[static_cast<std::size_t>(entry)];
        if (known.state == State::unknown) {
            const bool missing = texts.is_null(texts.offset + entry);
            known.hash = static_cast<std::uint32_t>(sink_.what(missing ? "" : text_at(texts, texts.offset + entry)));
            known.state = State::again;
        }
        sink_.count(column.c, static_cast<typename Sink::What>(known.hash));
    }

    Sink& sink_;
    std::int64_t offset_ = 0, features_ = 0;
    const std::uint8_t* validity_ = nullptr;
    std::vector<Column> columns_;
};

}  // namespace rarestream::arrow
