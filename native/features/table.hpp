// Rows of a table to hashed features: what each cell becomes is decided by the plan of its column.
//
// The parsers of all table formats (CSV, JSON, Arrow, Python dicts) call the same methods of a TableEncoder, so that a row
// has the same features whichever way it comes. A parser is a template of what it calls: TableSurvey has the same methods,
// and counts what kinds of cells each column has; from that the plan is made. docs/features.md specifies the features.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "features/cells.hpp"
#include "features/hashed_rows.hpp"
#include "features/per_thread.hpp"
#include "features/soft_buckets.hpp"
#include "json_keys.hpp"
#include "parsed_rows.hpp"

namespace rarestream::features {

// What the cells of a column become; several may be set. features/plan.py has the same numbers.
enum Kind : unsigned {
    CATEGORY = 1,
    NUMBER = 2,
    TEXT = 4,
    DATE = 8,
    AUTO = 16,  // as the cell is: text a category, a whole number a category and a number, a decimal a number
};

enum class Role : int { feature = 0, label = 1, importance = 2, tag = 3, ignored = 4 };

// The rules that a cell can break. The messages are in readers/tables.py.
enum class TableRule : int {
    none = 0,
    number = 1,      // text in a column of numbers
    finite = 2,      // nan or infinity
    large = 3,       // a raw number beyond float32
    date = 4,        // text in a column of dates
    importance = 5,  // not a number in the range of importances
    cross = 6,       // a cross with too many features
    sum = 7,         // duplicates sum to a value beyond float32
    nested = 8,      // lists or objects inside a list
    role = 9,        // a list or an object as label, importance or tag
    utf8 = 10,       // bytes that are not UTF-8 as text, in a source with types
    product = 11,    // a cross of raw numbers beyond float32
    long_name = 12,  // beyond the limit of a plan
    features = 13,   // more of them in a row than the limit of a plan
};

struct Column {
    std::string name;
    unsigned kinds = AUTO;
    Role role = Role::feature;
    std::uint32_t seed = 0;  // the hash of the name
    bool crossed = false;
    bool plain = false;           // whether its cells are categories and nothing else
    std::string_view space = {};  // the name, as the namespace of features
};

struct Cross {
    std::string name;
    std::uint32_t seed;
    std::vector<int> columns;
};

struct TablePlan {
    int bits = 22;
    bool names = true;  // whether they are collected
    bool raw = false;   // numbers as they are, not in soft buckets
    bool counts = false;
    bool open = false;  // a column that is not in the plan is AUTO, else it is ignored
    bool characters = false;
    int shortest = 1, longest = 1;  // n-grams of a text
    std::vector<Column> columns;
    std::vector<Cross> crosses;
    std::vector<std::string> missing;
    // For rows of requests: limits of a row, and whether the names of a text do not depend on what was parsed before.
    std::int64_t most_features = std::numeric_limits<std::int64_t>::max();
    std::size_t longest_name = std::numeric_limits<std::size_t>::max();
    bool forgets = false;
    std::unordered_map<std::string_view, int> by_name;  // of `columns`

    int add_column(std::string name, unsigned kinds, Role role) {
        columns.push_back({std::move(name), kinds, role});
        columns.back().seed = murmur3(columns.back().name, 0);
        return static_cast<int>(columns.size()) - 1;
    }

    // To be called once, when all columns are there: views of their names are kept.
    void finish() {
        for (std::size_t c = 0; c < columns.size(); ++c) {
            columns[c].space = columns[c].name;
            by_name.emplace(columns[c].name, static_cast<int>(c));
        }
        for (const Cross& cross : crosses) {
            for (const int c : cross.columns) columns[static_cast<std::size_t>(c)].crossed = true;
        }
        for (Column& column : columns) {
            column.plain = column.kinds == CATEGORY && column.role == Role::feature && !column.crossed && missing.empty();
        }
    }
};

// Text that must outlive a call, until the row ends.
class Arena {
public:
    char* allocate(std::size_t size) {
        while (block_ < blocks_.size() && blocks_[block_].second - used_ < size) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) {
            const std::size_t capacity = std::max<std::size_t>(size, 4096);
            blocks_.emplace_back(std::make_unique<char[]>(capacity + Names::READABLE), capacity);
            used_ = 0;
        }
        char* const at = blocks_[block_].first.get() + used_;
        used_ += size;
        return at;
    }

    std::string_view copy(std::string_view text) {
        char* const at = allocate(text.size());
        std::memcpy(at, text.data(), text.size());
        return {at, text.size()};
    }

    void clear() {
        if (blocks_.size() > 16) blocks_.clear();
        block_ = used_ = 0;
    }

private:
    std::vector<std::pair<std::unique_ptr<char[]>, std::size_t>> blocks_;
    std::size_t block_ = 0, used_ = 0;
};

// A set of hashes that is emptied in no time.
class HashSet {
public:
    void clear() {
        size_ = 0;
        if (++round_ == 0) {
            slots_.assign(slots_.size(), {0, 0});
            round_ = 1;
        }
    }

    // Whether it was not there.
    bool insert(std::uint32_t hash) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i].second != round_) {
                slots_[i] = {hash, round_};
                ++size_;
                return true;
            }
            if (slots_[i].first == hash) return false;
        }
    }

private:
    void grow() {
        auto before = std::move(slots_);
        slots_.assign(std::max<std::size_t>(64, 2 * before.size()), {0, 0});
        size_ = 0;
        for (const auto& [hash, round] : before) {
            if (round == round_) insert(hash);
        }
    }

    std::vector<std::pair<std::uint32_t, std::uint32_t>> slots_;  // hash and the round it belongs to
    std::size_t size_ = 0;
    std::uint32_t round_ = 1;
};

// What a thread keeps from chunk to chunk.
struct Worker {
    explicit Worker(const TablePlan& plan) {
        if (plan.names) filter = std::make_unique<NameFilter>();
        buckets.resize(plan.columns.size());
    }

    static constexpr int BUCKETS = 256;  // those of 2^-64 to 2^64, of either sign; others are hashed each time

    // The hashes of a column's bucket names, as they are needed; NAMED: it is known, and its name was collected.
    static constexpr std::uint64_t NAMED = std::uint64_t{1} << 32;
    using Buckets = std::array<std::uint64_t, 2 * BUCKETS>;

    std::unique_ptr<NameFilter> filter;
    std::vector<std::unique_ptr<Buckets>> buckets;
    std::vector<std::uint64_t*> named;  // entries of `buckets` that are to be forgotten
    Arena arena;
    HashSet seen;
    json::KnownKeys json_keys;

    // The names that were collected are to be collected again when they come again.
    void forget(const NewNames& collected) {
        for (const std::uint32_t hash : collected.hashes) filter->forget(hash);
        for (std::uint64_t* const entry : named) *entry = 0;
        named.clear();
    }
};

// The workers of a parser: one for each thread, so that a thread meets the chunks in their order (see new_names.hpp).
class Workers {
public:
    Worker& mine(const TablePlan& plan) {
        return workers_.mine([&] { return std::make_unique<Worker>(plan); });
    }

private:
    PerThread<Worker> workers_;
};

class TableEncoder {
public:
    static constexpr std::size_t MOST_CROSSED = 1 << 16;  // features of one cross in one row

    TableEncoder(const TablePlan& plan, Worker& worker, ParsedRows& rows)
        : plan_(plan), worker_(worker), rows_(rows), isa_(best_isa()), hashed_(plan.bits, worker.filter.get(), rows, isa_),
          parts_(plan.columns.size()) {
        rows_.labels_are_texts = true;
    }

    Arena& arena() { return worker_.arena; }
    json::KnownKeys& json_keys() { return worker_.json_keys; }

    // To be called before the first row, with about as many features as there will be.
    void reserve(std::size_t features) { hashed_.reserve(features); }

    // The number of a column; -1: it is not in the plan. Those of an open plan are given to `text` etc. as an `Other`.
    int column(std::string_view name) const {
        const auto found = plan_.by_name.find(name);
        return found == plan_.by_name.end() ? -1 : found->second;
    }

    bool open() const { return plan_.open; }

    // A column that an open plan does not have. It is good until the next call, but its name must be until the row ends.
    int other_column(std::string_view name) { return other_column(name, murmur3(name, 0)); }

    // The same, with the hash of its name.
    int other_column(std::string_view name, std::uint32_t seed) {
        other_.space = name;
        other_.seed = seed;
        if (name.size() > plan_.longest_name) {
            // A copy: where the name is, in the row or among those that a parser knows, must not matter.
            fail(TableRule::long_name, name, worker_.arena.copy(name.substr(0, LONGEST_TOKEN)));
        }
        return OTHER;
    }

    void begin_row() {
        hashed_.begin_row();
        worker_.arena.clear();
        for (const int c : crossed_) parts_[static_cast<std::size_t>(c)].clear();
        crossed_.clear();
        fault_ = TableRule::none;
        label_ = std::numeric_limits<double>::quiet_NaN();
        importance_ = 1;
        tag_ = {};
        path_ = {};
    }

    // -- cells. Views must stay valid until the row ends; what does not is copied to `arena()`.

    // A cell of a text file, whose type nobody has said. Most are plain categories, for which there is a short way.
    RARESTREAM_ALWAYS_INLINE void text(int c, std::string_view cell) {
        const Column& column = at(c);
        if (!column.plain || cell.empty() || cell.size() > plan_.longest_name) return typed_text(c, cell);
        hashed_.feature(column.seed, column.space, cell, 1);
    }

    // The same for all cells of a row, after each of which Names::READABLE bytes can be read. Plain categories are hashed
    // together. A column -1 is skipped.
    void texts(const int* columns, const std::string_view* cells, std::size_t count) {
        for (std::size_t first = 0; first < count; first += Names::SIZE) {
            const std::size_t end = std::min(first + Names::SIZE, count);
            std::size_t waiting = 0;
            for (std::size_t i = first; i < end; ++i) {
                const std::string_view cell = cells[i];
                if (columns[i] < 0 || cell.empty()) continue;
                const Column& column = plan_.columns[static_cast<std::size_t>(columns[i])];
                if (!column.plain) {
                    if (column.role == Role::feature && waiting) add_waiting(std::exchange(waiting, 0));  // in their order
                    typed_text(columns[i], cell);
                    continue;
                }
                waiting_.texts[waiting] = cell.data();
                waiting_.sizes[waiting] = static_cast<std::uint32_t>(cell.size());
                waiting_.hashes[waiting] = column.seed;
                columns_of_waiting_[waiting++] = &column;
            }
            add_waiting(waiting);
        }
    }

    // A cell by the plan of its column.
    void typed_text(int c, std::string_view cell) {
        if (cell.empty()) return;
        const Column& column = at(c);
        if (!plan_.missing.empty() && is_missing(cell)) return;
        if (column.role != Role::feature) return special(c, column, cell);
        if (column.kinds == CATEGORY) return category(c, column, cell);
        if (column.kinds & TEXT) return tokens(c, column, cell);
        if (column.kinds & DATE) {
            Date found;
            if (!date_cell(cell, found)) return fail(TableRule::date, c, cell);
            return dates(c, column, found);
        }
        number_text(c, column, cell);
    }

    // Text from a source with types: never a number unless its column is one.
    void string(int c, std::string_view cell) {
        const Column& column = at(c);
        if (column.kinds & AUTO && column.role == Role::feature) {
            if (!cell.empty() && !is_missing(cell)) category(c, column, cell);
            return;
        }
        text(c, cell);
    }

    // A number as it is written, from a source with types.
    void number_text(int c, std::string_view cell) {
        const Column& column = at(c);
        if (is_missing(cell)) return;
        const NumberCell found = number_cell(cell);
        if (column.role == Role::feature && column.kinds != CATEGORY && !(column.kinds & (TEXT | DATE))) {
            return number_found(c, column, found, cell);
        }
        if (found.kind == CellKind::whole) return text(c, found.digits);
        if (found.kind == CellKind::decimal && !all_digits(cell)) return number(c, found.value);
        text(c, cell);
    }

    // Long ids must not become the nearest double.
    static bool all_digits(std::string_view cell) {
        for (const char byte : cell.substr(!cell.empty() && cell[0] == '-')) {
            if (!is_digit(byte)) return false;
        }
        return true;
    }

    void whole(int c, std::int64_t value) {
        const Column& column = at(c);
        if (column.role == Role::label && value == last_whole_label_ && last_whole_code_ >= 0) {
            label_ = last_whole_code_;
            return;
        }
        const bool numeric =
            column.role == Role::feature && column.kinds & (NUMBER | AUTO) && !(column.kinds & (TEXT | DATE));
        if (numeric && value < TOO_LONG && value > -TOO_LONG && plan_.missing.empty()) {
            const bool both = column.kinds & (CATEGORY | AUTO);
            if (both) category(c, column, worker_.arena.copy(NumberText(value).text()));
            return numbers(c, column, static_cast<double>(value), column.crossed && !both);
        }
        number_text(c, worker_.arena.copy(NumberText(value).text()));
        if (column.role == Role::label && label_ >= 0) {
            last_whole_label_ = value;
            last_whole_code_ = label_;
        }
    }
    void whole(int c, std::uint64_t value) { number_text(c, worker_.arena.copy(NumberText(value).text())); }

    // A number from a source with types. NaN is missing there.
    void number(int c, double value) {
        if (std::isnan(value)) return;
        const Column& column = at(c);
        if (takes_buckets(c) && std::isfinite(value)) return numbers(c, column, value, column.crossed);
        if (std::isfinite(value) && std::fabs(value) < LARGEST_WHOLE && value == std::floor(value)) {
            return whole(c, static_cast<std::int64_t>(value));
        }
        const bool number =
            column.role == Role::feature && column.kinds & (NUMBER | AUTO) && !(column.kinds & (TEXT | DATE));
        if (number && std::isfinite(value) && plan_.missing.empty()) return numbers(c, column, value, column.crossed);
        const std::string_view spelled = worker_.arena.copy(NumberText(value).text());
        if (!std::isfinite(value)) return fail(TableRule::finite, c, spelled);
        if (!number) return text(c, spelled);
        if (!is_missing(spelled)) numbers(c, column, value, column.crossed);
    }

    // Whether all numbers of a column, whole ones too, become soft buckets and nothing else.
    bool takes_buckets(int c) const {
        const Column& column = at(c);
        return column.role == Role::feature && column.kinds == NUMBER && !plan_.raw && plan_.missing.empty();
    }

    // For such a column: the buckets of many numbers.
    template <class Number>
    void find_buckets(const Number* numbers, int size, SoftBucket* found) const {
        soft_buckets(numbers, size, found, isa_);
    }

    // For such a column: a number other than zero whose buckets are known.
    void bucketed(int c, bool negative, const SoftBucket& found) { buckets(c, at(c), negative, found, at(c).crossed); }

    void boolean(int c, bool value) { string(c, value ? "true" : "false"); }

    void date(int c, const Date& value, std::string_view spelled) {
        const Column& column = at(c);
        if (column.role == Role::feature && column.kinds & (DATE | AUTO)) return dates(c, column, value);
        text(c, spelled);
    }

    // A list: begin_list, then its elements as text, numbers by their digits.
    void begin_list(int c) {
        worker_.seen.clear();
        const Column& column = at(c);
        if (column.role != Role::feature && column.role != Role::ignored) fail(TableRule::role, c, "[");
    }

    void element(int c, std::string_view name) {
        const Column& column = at(c);
        if (name.empty() || column.role != Role::feature || is_missing(name)) return;
        if (column.kinds & TEXT) return tokens(c, column, name, false);
        once(c, column.seed, column.space, name, column.crossed);
    }

    // A map or a nested object: begin_map, then its entries.
    void begin_map(int c) {
        const Role role = at(c).role;
        if (role != Role::feature && role != Role::ignored) fail(TableRule::role, c, "{");
    }

    // Whether the cells of a column change nothing, so that a parser may skip them.
    bool ignores(int c) const { return at(c).role == Role::ignored; }

    // Whether dates are split into their parts, so that nobody needs them as text.
    bool splits_dates(int c) const { return at(c).role == Role::feature && at(c).kinds & (DATE | AUTO); }

    // Whether numbers are used as they are written.
    bool spells_numbers(int c) const { return at(c).role != Role::feature || !(at(c).kinds & (NUMBER | AUTO)); }

    // -- For a parser that meets the same text in a column again and again, and hashes it once.

    static constexpr bool KEEPS_ROWS = false;  // whether a parser passes on the text of rows
    static constexpr bool ENCODES = true;

    // Whether text in this column is a category and nothing else.
    bool is_category(int c) const { return at(c).role == Role::feature && (at(c).kinds == CATEGORY || at(c).kinds & AUTO); }

    bool is_crossed(int c) const { return at(c).crossed; }

    // The hash of a category; false: the text means missing.
    bool category_hash(int c, std::string_view text, std::uint32_t& hash) const {
        if (text.empty() || is_missing(text)) return false;
        hash = murmur3(text, at(c).seed);
        return true;
    }

    // To be called some time before `first_category`: its memory is then in a cache.
    void expect_category(std::uint32_t hash) const { hashed_.expect(hash); }

    // A category by its hash, in the first row that has it and is not dropped.
    void first_category(int c, std::uint32_t hash, std::string_view text) {
        if (text.size() > plan_.longest_name) return fail(TableRule::long_name, c, text);
        hashed_.add(hash, at(c).space, text, 1);
        if (at(c).crossed) part(c, text, 1);
    }

    // The same again in another row. A column that is crossed needs the text each time.
    void known_category(std::uint32_t hash) { hashed_.add_known(hash, 1); }

    // An entry of a map or nested object, whose namespace is the path to it and `seed` its hash. The views may end.
    void entry(std::string_view path, std::uint32_t seed, std::string_view key, double value) {
        if (std::isnan(value)) return;
        if (!(std::fabs(value) <= std::numeric_limits<float>::max())) {
            joined_.assign(path).append(1, '.').append(key);
            return fail(std::isfinite(value) ? TableRule::large : TableRule::finite, joined_, NumberText(value).text());
        }
        if (value == 0 || beyond_limits(path, key)) return;
        hashed_.feature(seed, kept_path(path), worker_.arena.copy(key), static_cast<float>(value));
    }

    void entry(std::string_view path, std::uint32_t seed, std::string_view key, std::string_view text) {
        if (text.empty() || is_missing(text)) return;
        joined_.assign(key).append(1, '=').append(text);
        if (beyond_limits(path, joined_)) return;
        hashed_.feature(seed, kept_path(path), worker_.arena.copy(joined_), 1);
    }

    // The first rule that a row breaks is the one that is reported.
    void fail(TableRule rule, int c, std::string_view token) { fail(rule, at(c).space, token); }

    void fail(TableRule rule, std::string_view field, std::string_view token) {
        if (fault_ != TableRule::none) return;
        fault_ = rule;
        field_.assign(field.substr(0, 128));
        token_at_ = token.data();
        token_.assign(token.substr(0, LONGEST_TOKEN));
    }

    bool failed() const { return fault_ != TableRule::none; }
    const char* failed_at() const { return token_at_; }  // where the text that breaks a rule is, for a column number

    // Ends a row. False: it breaks a rule; `line` and `column` then say where.
    bool end_row(std::int64_t line, std::int32_t column, std::int64_t fault_column) {
        if (fault_ == TableRule::none && !plan_.crosses.empty()) crosses();
        if (hashed_.row_size() > plan_.most_features) fail(TableRule::features, std::string_view(), {});
        if (fault_ == TableRule::none && !hashed_.end_row()) fail(TableRule::sum, std::string_view(), {});
        if (fault_ != TableRule::none) {
            drop_row();
            rows_.bad.push_back({line, fault_column, static_cast<int>(fault_), token_, field_});
            return false;
        }
        if (plan_.forgets) worker_.named.insert(worker_.named.end(), named_.begin(), named_.end());
        named_.clear();
        rows_.labels.push_back(label_);
        rows_.lines.push_back(line);
        rows_.columns.push_back(column);
        rows_.keep_importance(importance_);
        rows_.keep_tag(tag_);
        return true;
    }

    void drop_row() {
        hashed_.drop_row();
        for (std::uint64_t* const entry : named_) *entry = 0;  // their names are dropped, too
        named_.clear();
    }

private:
    static constexpr int OTHER = -2;
    static constexpr std::array<float, Names::SIZE> ONES = [] {
        std::array<float, Names::SIZE> ones{};
        for (float& one : ones) one = 1;
        return ones;
    }();

    struct Part {
        std::string_view name;
        float value;
    };

    const Column& at(int c) const { return c == OTHER ? other_ : plan_.columns[static_cast<std::size_t>(c)]; }

    bool is_missing(std::string_view cell) const {
        for (const std::string& text : plan_.missing) {
            if (cell == text) return true;
        }
        return false;
    }

    void add_waiting(std::size_t count) {
        hashed_.add(waiting_, ONES.data(), count, [this](std::size_t i) { return columns_of_waiting_[i]->space; });
    }

    // The entries of a map have the same path: it is copied once.
    std::string_view kept_path(std::string_view path) {
        if (path_.data() == nullptr || path != path_) path_ = worker_.arena.copy(path);
        return path_;
    }

    void part(int c, std::string_view name, float value) {
        auto& parts = parts_[static_cast<std::size_t>(c)];
        if (parts.empty()) crossed_.push_back(c);
        parts.push_back({name, value});
    }

    // Whether a feature must not be added. Objects, lists and text may have many in little text, so that they are counted
    // while they come; of other cells, those of a row are counted when it ends.
    bool beyond_limits(std::string_view space, std::string_view name) {
        if (name.size() > plan_.longest_name || space.size() > plan_.longest_name) {
            fail(TableRule::long_name, space.substr(0, LONGEST_TOKEN), name.size() > plan_.longest_name ? name : space);
            return true;
        }
        return hashed_.row_size() > plan_.most_features;
    }

    void category(int c, const Column& column, std::string_view name) {
        if (name.size() > plan_.longest_name) return fail(TableRule::long_name, c, name);
        hashed_.feature(column.seed, column.space, name, 1);
        if (column.crossed) part(c, name, 1);
    }

    // A name that counts once in a row, however often it comes, unless counts are wanted.
    void once(int c, std::uint32_t seed, std::string_view space, std::string_view name, bool crossed) {
        const std::uint32_t hash = murmur3(name, seed);
        const bool first = worker_.seen.insert(hash);
        if ((!first && !plan_.counts) || beyond_limits(space, name)) return;
        hashed_.add(hash, space, name, 1);
        if (crossed && first) part(c, name, 1);
    }

    void number_text(int c, const Column& column, std::string_view cell) {
        number_found(c, column, number_cell(cell), cell);
    }

    void number_found(int c, const Column& column, const NumberCell& found, std::string_view cell) {
        switch (found.kind) {
            case CellKind::whole: {
                const bool both = column.kinds & (CATEGORY | AUTO);
                if (both) category(c, column, found.digits);
                if (column.kinds & (NUMBER | AUTO)) numbers(c, column, found.value, column.crossed && !both);
                return;
            }
            case CellKind::decimal:
                return numbers(c, column, found.value, column.crossed);
            case CellKind::text:
                if (column.kinds & AUTO) return category(c, column, cell);
                return fail(TableRule::number, c, cell);
            case CellKind::not_finite:
                if (column.kinds & AUTO) return category(c, column, cell);
                return fail(TableRule::finite, c, cell);
            case CellKind::too_large:
                return fail(TableRule::large, c, cell);
        }
    }

    void numbers(int c, const Column& column, double value, bool crossed) {
        if (plan_.raw) {
            if (!(std::fabs(value) <= std::numeric_limits<float>::max())) {
                return fail(TableRule::large, c, NumberText(value).text());
            }
            if (static_cast<float>(value) == 0) return;
            hashed_.feature(column.seed, column.space, {}, static_cast<float>(value));
            if (crossed) part(c, {}, static_cast<float>(value));
            return;
        }
        if (value == 0) {
            hashed_.feature(column.seed, column.space, ZERO_BUCKET, 1);
            if (crossed) part(c, ZERO_BUCKET, 1);
            return;
        }
        buckets(c, column, value < 0, soft_bucket(value), crossed);
    }

    void buckets(int c, const Column& column, bool negative, const SoftBucket& found, bool crossed) {
        const float lower = static_cast<float>(1.0 - found.t), upper = static_cast<float>(found.t);
        const int i = 2 * (found.k + Worker::BUCKETS / 2) + negative;
        if (c != OTHER && i >= 0 && i + 2 < 2 * Worker::BUCKETS && worker_.buckets[static_cast<std::size_t>(c)]) {
            const std::uint64_t* const entry = worker_.buckets[static_cast<std::size_t>(c)]->data() + i;
            if (entry[0] & entry[2] & Worker::NAMED && lower != 0 && upper != 0 && !crossed) {  // almost always
                return hashed_.add_two_known(static_cast<std::uint32_t>(entry[0]), lower,
                                             static_cast<std::uint32_t>(entry[2]), upper);
            }
        }
        if (lower != 0) bucket(c, column, found.k, negative, lower, crossed);
        if (upper != 0) bucket(c, column, found.k + 1, negative, upper, crossed);
    }

    void bucket(int c, const Column& column, int k, bool negative, float value, bool crossed) {
        const int i = 2 * (k + Worker::BUCKETS / 2) + negative;
        if (c == OTHER || i < 0 || i >= 2 * Worker::BUCKETS) {
            hashed_.feature(column.seed, column.space, BucketNames::all().name(k, negative), value);
        } else {
            auto& known = worker_.buckets[static_cast<std::size_t>(c)];
            if (!known) known = std::make_unique<Worker::Buckets>();
            std::uint64_t& entry = (*known)[static_cast<std::size_t>(i)];
            if (entry & Worker::NAMED) {
                hashed_.add_known(static_cast<std::uint32_t>(entry), value);
            } else {
                const std::string_view name = BucketNames::all().name(k, negative);
                entry = Worker::NAMED | murmur3(name, column.seed);
                named_.push_back(&entry);
                hashed_.add(static_cast<std::uint32_t>(entry), column.space, name, value);
            }
        }
        if (crossed) part(c, BucketNames::all().name(k, negative), value);
    }

    void dates(int c, const Column& column, const Date& found) {
        if (found.hour >= 0) date_part(c, column, "hour=", found.hour);
        date_part(c, column, "weekday=", found.weekday);
        date_part(c, column, "month=", found.month);
    }

    void date_part(int c, const Column& column, std::string_view word, int value) {
        char* const text = worker_.arena.allocate(word.size() + 2);
        std::memcpy(text, word.data(), word.size());
        const char* const end = std::to_chars(text + word.size(), text + word.size() + 2, value).ptr;
        category(c, column, {text, static_cast<std::size_t>(end - text)});
    }

    // -- text

    static bool is_word(unsigned char c) {
        return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    }

    static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

    // N-grams of words, or of characters, of a text in lower case whose words are one space apart. They are slices of it.
    void tokens(int c, const Column& column, std::string_view cell, bool fresh = true) {
        if (fresh) worker_.seen.clear();
        char* const text = worker_.arena.allocate(cell.size() + 1);
        char* end = text;
        starts_.clear();
        bool inside = false;
        for (const char byte : cell) {
            const bool part_of_word =
                plan_.characters ? static_cast<unsigned char>(byte) > ' ' : is_word(static_cast<unsigned char>(byte));
            if (!part_of_word) {
                inside = false;
                continue;
            }
            if (!inside && end != text) *end++ = ' ';
            if (plan_.characters) {
                if (!inside && end != text) starts_.push_back(static_cast<std::size_t>(end - text) - 1);
                if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80)
                    starts_.push_back(static_cast<std::size_t>(end - text));
            } else if (!inside) {
                starts_.push_back(static_cast<std::size_t>(end - text));
            }
            inside = true;
            *end++ = lower(byte);
        }
        const std::size_t space = plan_.characters ? 0 : 1;  // what follows a word before the next one starts
        starts_.push_back(static_cast<std::size_t>(end - text) + space);
        for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
            for (int n = plan_.shortest; n <= plan_.longest && i + static_cast<std::size_t>(n) < starts_.size(); ++n) {
                const std::size_t stop = starts_[i + static_cast<std::size_t>(n)] - space;
                once(c, column.seed, column.space, {text + starts_[i], stop - starts_[i]}, column.crossed);
            }
        }
    }

    // -- crosses

    void crosses() {
        for (const Cross& cross : plan_.crosses) {
            std::size_t size = 1;
            for (const int c : cross.columns)
                size *= std::min(parts_[static_cast<std::size_t>(c)].size(), MOST_CROSSED + 1);
            if (size > MOST_CROSSED || cross.columns.size() > 8) return fail(TableRule::cross, cross.name, {});
            if (size) product(cross, 0, 1);
        }
    }

    void product(const Cross& cross, std::size_t depth, float value) {
        if (depth == cross.columns.size()) {
            if (!(std::fabs(value) <= std::numeric_limits<float>::max())) return fail(TableRule::product, cross.name, {});
            if (hashed_.row_size() > plan_.most_features) return;
            hashed_.feature(cross.seed, cross.name, worker_.arena.copy(joined_), value);
            return;
        }
        const std::size_t before = depth == 0 ? 0 : joined_.size();
        for (const Part& part : parts_[static_cast<std::size_t>(cross.columns[depth])]) {
            joined_.resize(before);
            if (depth) joined_.push_back('\x1f');
            joined_.append(part.name);
            product(cross, depth + 1, value * part.value);
        }
        joined_.resize(before);
    }

    // -- what is not a feature

    void special(int c, const Column& column, std::string_view cell) {
        if (column.role == Role::label) {
            label_ = label_code(cell);
        } else if (column.role == Role::tag) {
            tag_ = cell;
        } else if (column.role == Role::importance) {
            const NumberCell found = number_cell(cell);
            const bool number = found.kind == CellKind::whole || found.kind == CellKind::decimal;
            const double h = found.value;
            if (!number || !(h == 0 || (h >= SMALLEST_IMPORTANCE && h <= LARGEST_IMPORTANCE))) {
                return fail(TableRule::importance, c, cell);
            }
            importance_ = h;
        }
    }

    double label_code(std::string_view cell) {
        if (cell == last_label_) return last_code_;
        const auto [found, added] = codes_.emplace(std::string(cell), static_cast<double>(rows_.label_texts.size()));
        if (added) rows_.label_texts.emplace_back(cell);
        last_label_ = found->first;  // keys of the map do not move
        last_code_ = found->second;
        return last_code_;
    }

    const TablePlan& plan_;
    Worker& worker_;
    ParsedRows& rows_;
    const Isa isa_;
    HashedRows hashed_;
    Names waiting_;  // categories that are to be hashed together
    const Column* columns_of_waiting_[Names::SIZE];
    Column other_;
    std::vector<std::vector<Part>> parts_;  // of the columns that crosses need
    std::vector<std::uint64_t*> named_;     // entries of Worker::Buckets that are NAMED since this row
    std::vector<int> crossed_;              // the columns of this row that have some
    std::vector<std::size_t> starts_;
    std::string joined_;
    std::unordered_map<std::string, double> codes_;
    std::string_view last_label_ = {};
    double last_code_ = 0;
    std::int64_t last_whole_label_ = 0;
    double last_whole_code_ = -1;  // of it; -1: there was none
    // The current row.
    TableRule fault_ = TableRule::none;
    std::string field_, token_;
    const char* token_at_ = nullptr;
    double label_ = 0, importance_ = 1;
    std::string_view tag_ = {};
    std::string_view path_ = {};  // of the last entry of a map
};

// Counts what kinds of cells each column has.
struct ColumnCounts {
    std::string name;
    std::int64_t whole = 0, decimal = 0, date = 0, text = 0, list = 0, map = 0;  // all others are missing
};

class TableSurvey {
public:
    explicit TableSurvey(std::vector<std::string> missing = {}) : missing_(std::move(missing)) {}

    std::vector<ColumnCounts> columns;
    std::int64_t rows = 0;

    Arena& arena() { return arena_; }
    bool open() const { return true; }
    void reserve(std::size_t) {}

    int column(std::string_view name) {
        const auto found = by_name_.find(std::string(name));
        return found == by_name_.end() ? -1 : found->second;
    }

    int other_column(std::string_view name, std::uint32_t) { return other_column(name); }
    int other_column(std::string_view name) {
        if (columns.size() >= MOST_COLUMNS) return SPARE;
        columns.push_back({std::string(name)});
        const int c = static_cast<int>(columns.size()) - 1;
        by_name_.emplace(name, c);
        return c;
    }

    void begin_row() { arena_.clear(); }

    void text(int c, std::string_view cell) {
        if (cell.empty() || is_missing(cell)) return;
        switch (number_cell(cell).kind) {
            case CellKind::whole:
                ++at(c).whole;
                return;
            case CellKind::decimal:
            case CellKind::not_finite:  // an error when it is read
            case CellKind::too_large:
                ++at(c).decimal;
                return;
            case CellKind::text:
                string(c, cell);
        }
    }

    void texts(const int* columns, const std::string_view* cells, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (columns[i] >= 0) text(columns[i], cells[i]);
        }
    }

    void string(int c, std::string_view cell) { count(c, what(cell)); }

    // What a text is, for a parser that meets the same again and again.
    enum class What : unsigned char { unknown, missing, date, text };

    What what(std::string_view cell) const {
        Date date;
        if (cell.empty() || is_missing(cell)) return What::missing;
        return date_cell(cell, date) ? What::date : What::text;
    }

    void count(int c, What found) {
        if (found != What::missing) ++(found == What::date ? at(c).date : at(c).text);
    }

    void number_text(int c, std::string_view cell) { text(c, cell); }
    void whole(int c, std::int64_t value) { ++(value < TOO_LONG && value > -TOO_LONG ? at(c).whole : at(c).decimal); }
    void whole(int c, std::uint64_t value) { ++(value < std::uint64_t{TOO_LONG} ? at(c).whole : at(c).decimal); }

    void number(int c, double value) {
        if (std::isnan(value)) return;
        ++(std::fabs(value) < LARGEST_WHOLE && value == std::floor(value) ? at(c).whole : at(c).decimal);
    }

    void boolean(int c, bool) { ++at(c).text; }
    void date(int c, const Date&, std::string_view) { ++at(c).date; }
    void begin_list(int c) { ++at(c).list; }
    void element(int, std::string_view) {}
    void begin_map(int c) { ++at(c).map; }
    bool ignores(int) const { return false; }
    bool splits_dates(int) const { return true; }
    bool spells_numbers(int) const { return false; }
    static constexpr bool ENCODES = false;
    static constexpr bool KEEPS_ROWS = false;  // whether a parser passes on the text of rows
    void entry(std::string_view, std::uint32_t, std::string_view, double) {}
    void entry(std::string_view, std::uint32_t, std::string_view, std::string_view) {}
    void fail(TableRule, int, std::string_view) { failed_ = true; }
    void fail(TableRule, std::string_view, std::string_view) { failed_ = true; }
    bool failed() const { return failed_; }
    const char* failed_at() const { return nullptr; }

    bool end_row(std::int64_t, std::int32_t, std::int64_t) {
        ++rows;
        failed_ = false;
        return true;
    }

    void drop_row() {}

    static constexpr std::size_t MOST_COLUMNS = 100'000;

private:
    static constexpr int SPARE = -2;

    ColumnCounts& at(int c) { return c < 0 ? spare_ : columns[static_cast<std::size_t>(c)]; }

    bool is_missing(std::string_view cell) const {
        for (const std::string& text : missing_) {
            if (cell == text) return true;
        }
        return false;
    }

    std::vector<std::string> missing_;
    std::unordered_map<std::string, int> by_name_;
    ColumnCounts spare_;
    Arena arena_;
    bool failed_ = false;
};

}  // namespace rarestream::features
