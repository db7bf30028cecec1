// libFuzzer target for the rows of an Arrow record batch. The bytes choose the types, the layout and the values of its
// columns, also such that no producer should make. Either an ArrowError is thrown, or the rows are sound, every feature has
// a name and the name its hash, taking the rows in two pieces does not matter, and the survey sees as many rows. All
// buffers are exactly as long as the interface promises: no byte outside of them may be touched.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "arrow/rows.hpp"
#include "promises.hpp"

using namespace rarestream;
using rarestream::fuzz::check_cut;
using rarestream::fuzz::check_names;
using rarestream::fuzz::check_sound;
using rarestream::fuzz::require;
using rarestream::fuzz::same_meaning;

namespace {

using arrow::Type;
using Memory = std::unique_ptr<std::uint8_t[]>;

// The bytes of the fuzzer, one after the other; zeros when there are no more.
class Choices {
public:
    Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    unsigned byte() { return at_ == end_ ? 0 : *at_++; }
    unsigned below(unsigned limit) { return byte() % limit; }

    // Memory of this size. Its bytes come again after some, so that a short input makes a long column; 0: they do not.
    Memory memory(std::int64_t size) {
        Memory made(new std::uint8_t[static_cast<std::size_t>(size)]);
        const std::int64_t period = size ? byte() : 0;
        for (std::int64_t i = 0; i < size; ++i) {
            made[i] = period && i >= period ? made[i - period] : static_cast<std::uint8_t>(byte());
        }
        return made;
    }

private:
    const std::uint8_t *at_, *end_;
};

// A column, or a part of one.
struct Node {
    std::string format;
    ArrowSchema schema{};
    ArrowArray array{};
    std::vector<Memory> memory;
    std::vector<const void*> buffers;
    std::vector<std::unique_ptr<Node>> children;
    std::vector<ArrowSchema*> schemas;
    std::vector<ArrowArray*> arrays;
    std::unique_ptr<Node> dictionary;
};

constexpr const char* INTEGERS[] = {"c", "C", "s", "S", "i", "I", "l", "L"};
constexpr const char* RUN_ENDS[] = {"s", "i", "l"};
constexpr const char* OTHERS[] = {
    "n",   "b",    "e",     "f",         "g",        "u",   "z",           "U",   "Z",   "vu",  "vz",
    "w:0", "w:3",  "d:9,2", "d:9,-3,32", "d:9,4,64", "tdD", "d:38,99,256", "tdm", "tts", "ttm", "ttu",
    "ttn", "tss:", "tsm:",  "tsu:UTC",   "tsn:",     "tDs", "tDn",         "?",   "tsx:"};
constexpr const char* NESTED[] = {"+l", "+L", "+vl", "+vL", "+w:0", "+w:2", "+s", "+m", "+r"};

template <std::size_t Size>
const char* one_of(const char* const (&formats)[Size], Choices& choices) {
    return formats[choices.below(Size)];
}

class Maker {
public:
    explicit Maker(Choices& choices) : choices_(choices) {}

    // A column with at least so many values, or hardly ever fewer.
    std::unique_ptr<Node> column(const char* name, std::int64_t length, int level = 0) {
        const unsigned kind = choices_.below(8);
        if (kind < 2) return made(one_of(INTEGERS, choices_), name, length, level, kind == 1);
        if (kind < 6 || level > 3) return made(one_of(OTHERS, choices_), name, length, level);
        return made(one_of(NESTED, choices_), name, length, level);
    }

    // Lets the structs of a node point to what it has.
    static void adopt(Node& node) {
        for (const auto& child : node.children) {
            node.schemas.push_back(&child->schema);
            node.arrays.push_back(&child->array);
        }
        node.schema.format = node.format.c_str();
        node.schema.n_children = node.array.n_children = static_cast<std::int64_t>(node.children.size());
        node.schema.children = node.schemas.data();
        node.array.children = node.arrays.data();
        if (node.dictionary) node.schema.dictionary = &node.dictionary->schema;
        if (node.dictionary) node.array.dictionary = &node.dictionary->array;
        node.array.n_buffers = static_cast<std::int64_t>(node.buffers.size());
        node.array.buffers = node.buffers.data();
    }

    // A bitmap of what is not null, which may not be there.
    void add_validity(Node& node, unsigned choice) {
        const std::int64_t end = node.array.offset + node.array.length;
        node.array.null_count = choice & 1 ? -1 : 0;
        add_if(choice & 2, node, (end + 7) / 8);
    }

private:
    std::unique_ptr<Node> made(const char* format, const char* name, std::int64_t length, int level,
                               bool of_dictionary = false) {
        auto node = std::make_unique<Node>();
        const unsigned layout = choices_.byte();
        const bool hostile = layout & 16;
        if (layout >> 5 == 7 && length > 0) --length;
        if (layout >> 5 == 6) length += 2;
        node->format = format;
        node->schema.name = name;
        node->array.length = length;
        node->array.offset = layout & 3;
        const std::int64_t end = node->array.offset + length;
        arrow::Format found;
        const bool known = arrow::parse_format(format, found);
        if (known && found.type != Type::null && found.type != Type::run_ends) add_validity(*node, layout >> 2);
        if (known) fill(*node, found, end, hostile, level);
        if (of_dictionary) node->dictionary = column("", choices_.below(8), level + 1);
        adopt(*node);
        if (hostile) spoil(*node);
        return node;
    }

    std::uint8_t* add(Node& node, std::int64_t size) {
        node.memory.push_back(choices_.memory(size));
        node.buffers.push_back(node.memory.back().get());
        return node.memory.back().get();
    }

    void add_if(bool there, Node& node, std::int64_t size) {
        there ? void(add(node, size)) : node.buffers.push_back(nullptr);
    }

    // The buffers after the bitmap, and the children, of an array that ends at `end`.
    void fill(Node& node, const arrow::Format& format, std::int64_t end, bool hostile, int level) {
        switch (format.type) {
            case Type::null:
                return;
            case Type::boolean:
                add(node, (end + 7) / 8);
                return;
            case Type::int8:
            case Type::uint8:
                add(node, end);
                return;
            case Type::int16:
            case Type::uint16:
            case Type::float16:
                add(node, 2 * end);
                return;
            case Type::int32:
            case Type::uint32:
            case Type::float32:
            case Type::date32:
            case Type::time32:
                add(node, 4 * end);
                return;
            case Type::int64:
            case Type::uint64:
            case Type::float64:
            case Type::date64:
            case Type::time64:
            case Type::timestamp:
            case Type::duration:
                add(node, 8 * end);
                return;
            case Type::fixed_bytes:
            case Type::decimal:
                add(node, format.width * end);
                return;
            case Type::text32:
                return fill_text<std::int32_t>(node, end, hostile);
            case Type::text64:
                return fill_text<std::int64_t>(node, end, hostile);
            case Type::text_view:
                return fill_views(node, end, hostile);
            case Type::list32:
                return fill_lists<std::int32_t>(node, end, hostile, level);
            case Type::list64:
                return fill_lists<std::int64_t>(node, end, hostile, level);
            case Type::list_view32:
                return fill_slices<std::int32_t>(node, end, hostile, level);
            case Type::list_view64:
                return fill_slices<std::int64_t>(node, end, hostile, level);
            case Type::fixed_list:
                node.children.push_back(column("item", end * format.width, level + 1));
                return;
            case Type::structure:
                for (unsigned n = choices_.below(4); n--;) node.children.push_back(column(name(), end, level + 1));
                return;
            case Type::map: {
                auto entries = std::make_unique<Node>();
                entries->format = "+s";
                entries->array.offset = choices_.below(3);
                entries->array.length = choices_.below(64);
                const std::int64_t last = entries->array.offset + entries->array.length;
                entries->children.push_back(column("key", last, level + 1));
                entries->children.push_back(column("value", last, level + 1));
                entries->buffers.push_back(nullptr);
                adopt(*entries);
                fill_offsets<std::int32_t>(node, end, entries->array.length, hostile, false);
                node.children.push_back(std::move(entries));
                return;
            }
            case Type::run_ends: {
                const std::int64_t runs = choices_.below(16);
                node.children.push_back(made(one_of(RUN_ENDS, choices_), "run_ends", runs, level + 1));
                node.children.push_back(column("values", runs, level + 1));
                return;
            }
        }
    }

    template <class Offset>
    void fill_text(Node& node, std::int64_t end, bool hostile) {
        const std::int64_t size = choices_.byte();
        fill_offsets<Offset>(node, end, size, hostile, true);
        add_if(size, node, size);
    }

    template <class Offset>
    void fill_lists(Node& node, std::int64_t end, bool hostile, int level) {
        const std::int64_t size = choices_.below(64);
        node.children.push_back(column("item", size, level + 1));
        fill_offsets<Offset>(node, end, size, hostile, false);
    }

    // Offsets into something of this size. Hostile ones are anything; those of text are promised to be within its buffer.
    template <class Offset>
    void fill_offsets(Node& node, std::int64_t end, std::int64_t size, bool hostile, bool promised) {
        if (end == 0) return node.buffers.push_back(nullptr);  // as some producers do
        auto* const offsets = reinterpret_cast<Offset*>(add(node, (end + 1) * std::int64_t{sizeof(Offset)}));
        const Offset most = static_cast<Offset>(size);
        Offset before = 0;
        for (std::int64_t i = 0; i <= end; ++i) {
            if (!hostile) before = std::min<Offset>(most, before + (offsets[i] & 7));
            if (!hostile) offsets[i] = before;
            if (promised) offsets[i] = std::min(offsets[i], most);
        }
    }

    // Of a list view. All of it is checked.
    template <class Offset>
    void fill_slices(Node& node, std::int64_t end, bool hostile, int level) {
        const std::int64_t size = choices_.below(64);
        node.children.push_back(column("item", size, level + 1));
        auto* const begins = reinterpret_cast<Offset*>(add(node, end * std::int64_t{sizeof(Offset)}));
        auto* const sizes = reinterpret_cast<Offset*>(add(node, end * std::int64_t{sizeof(Offset)}));
        for (std::int64_t i = 0; i < end && !hostile; ++i) {
            begins[i] = static_cast<Offset>((begins[i] & 255) % (size + 1));
            sizes[i] = std::min<Offset>(sizes[i] & 7, static_cast<Offset>(size) - begins[i]);
        }
    }

    void fill_views(Node& node, std::int64_t end, bool hostile) {
        std::uint8_t* const views = add(node, 16 * end);
        std::vector<std::int64_t> sizes;
        for (unsigned n = choices_.below(4); n--;) {
            sizes.push_back(choices_.byte());
            add_if(sizes.back(), node, sizes.back());
        }
        for (std::int64_t i = 0; i < end; ++i) {
            std::int32_t parts[4];  // as in text_of_view
            std::memcpy(parts, views + 16 * i, sizeof parts);
            if (!hostile) parts[0] &= 31;
            if (parts[0] > 12) {
                if (!hostile) parts[2] &= 3;
                if (!hostile) parts[3] &= 127;
                if (parts[2] >= 0 && parts[2] < static_cast<int>(sizes.size()) && parts[3] >= 0) {  // then it is promised
                    const auto size = static_cast<std::int32_t>(sizes[static_cast<std::size_t>(parts[2])]);
                    parts[3] = std::min(parts[3], size);
                    parts[0] = std::min(parts[0], size - parts[3]);
                }
            }
            std::memcpy(views + 16 * i, parts, sizeof parts);
        }
        std::uint8_t* const last = add(node, 8 * static_cast<std::int64_t>(sizes.size()));
        if (!sizes.empty()) std::memcpy(last, sizes.data(), 8 * sizes.size());
    }

    const char* name() {
        static constexpr const char* names[] = {"k", "", nullptr, "caf\xc3\xa9"};
        return one_of(names, choices_);
    }

    // What a reader can see to be wrong.
    void spoil(Node& node) {
        ArrowArray& array = node.array;
        switch (choices_.byte()) {
            case 1:
                --array.n_buffers;
                return;
            case 2:
                array.buffers = nullptr;
                return;
            case 3:
                if (node.buffers.size() > 1) node.buffers[1] = nullptr;
                return;
            case 4:
                array.n_children = 0;
                return;
            case 5:
                array.children = nullptr;
                return;
            case 6:
                array.dictionary = nullptr;
                return;
            case 7:
                array.length = -1;
                return;
            case 8:
                array.offset = std::int64_t{1} << 62;
                return;
            case 9:
                node.schema.format = nullptr;
                return;
            case 10:
                if (!node.arrays.empty()) node.arrays.back() = nullptr;
                return;
            case 11:
                if (!node.schemas.empty()) node.schemas.back() = nullptr;
                return;
            case 12:
                node.schema.n_children = array.n_children = -1;
                return;
            default:
                return;
        }
    }

    Choices& choices_;
};

features::TablePlan plan_of(Choices& choices, std::size_t columns) {
    using namespace features;
    static constexpr unsigned kinds[] = {AUTO, CATEGORY, NUMBER, TEXT, DATE, NUMBER | CATEGORY};
    static constexpr Role roles[] = {Role::feature, Role::feature,    Role::feature, Role::feature,
                                     Role::label,   Role::importance, Role::tag,     Role::ignored};
    TablePlan plan;
    const unsigned choice = choices.byte();
    plan.bits = 18;
    plan.names = false;
    plan.raw = choice & 1;
    plan.counts = choice & 2;
    plan.characters = choice & 4;
    plan.longest = choice & 8 ? 3 : 1;
    if (choice & 16) plan.missing = {"NA", "1"};
    for (std::size_t c = 0; c < columns; ++c) {
        const unsigned what = choices.byte();
        plan.add_column("c" + std::to_string(c), kinds[(what >> 3) % 6], roles[what & 7]);
    }
    if (choice & 32) plan.crosses.push_back({"c0*c1", murmur3("c0*c1", 0), {0, 1}});
    plan.finish();
    return plan;
}

struct Table {
    features::TablePlan plan;
    Node batch;
    std::vector<int> columns;  // their numbers in the plan
    std::int64_t stop_after;

    // False: it is not as the interface prescribes.
    bool parse(std::int64_t start, std::int64_t stop, ParsedRows& rows) const {
        features::Worker worker(plan);
        return parse(start, stop, rows, worker);
    }

    bool parse(std::int64_t start, std::int64_t stop, ParsedRows& rows, features::Worker& worker) const {
        try {
            features::TableEncoder encoder(plan, worker, rows);
            arrow::Rows<features::TableEncoder>(encoder, batch.schema, batch.array, columns)
                .parse(start, stop, rows, stop_after);
        } catch (const arrow::ArrowError&) {
            return false;
        }
        return true;
    }

    // All rows, with the names of their features.
    ParsedRows named() const {
        static features::Worker worker{features::TablePlan()};  // its filter takes megabytes: what it learns is forgotten
        worker.buckets.clear();
        worker.buckets.resize(plan.columns.size());
        ParsedRows rows;
        require(parse(0, batch.array.length, rows, worker), "what can be read can be read with names");
        for (const std::uint32_t hash : rows.names.hashes) worker.filter->forget(hash);
        return rows;
    }

    bool survey(std::int64_t& rows) const {
        features::TableSurvey survey(plan.missing);
        ParsedRows unused;
        std::vector<int> numbers = columns;
        for (int& c : numbers) {
            const int other = survey.other_column("");
            if (c >= 0) c = other;
        }
        try {
            arrow::Rows<features::TableSurvey>(survey, batch.schema, batch.array, numbers)
                .parse(0, batch.array.length, unused, INT64_MAX);
        } catch (const arrow::ArrowError&) {
            return false;
        }
        rows = survey.rows;
        return true;
    }
};

void check_all_named(const ParsedRows& rows, int bits) {
    check_names(rows.names);
    std::unordered_set<std::int32_t> slots;
    for (const std::uint32_t hash : rows.names.hashes) {
        slots.insert(static_cast<std::int32_t>(hash & ((std::uint32_t{1} << bits) - 1)));
    }
    for (std::int64_t p = 0; p < rows.indptr.back(); ++p) require(slots.count(rows.indices[p]), "every feature has a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Choices choices(data, size);
    const unsigned choice = choices.byte(), cut_at = choices.byte();
    std::int64_t length = choices.byte();
    length = length < 192 ? length % 16 : length - 92;  // few rows, which is quick, or more than a block of them
    const std::size_t columns = 2 + (choice & 3);
    Table table{plan_of(choices, columns), {}, {}, choice & 4 ? 1 : std::int64_t{1} << 40};
    if (!table.plan.crosses.empty()) length %= 32;  // they make many features
    Node& batch = table.batch;
    batch.format = "+s";
    batch.array.length = length;
    batch.array.offset = choice >> 3 & 3;
    Maker maker(choices);
    maker.add_validity(batch, choice >> 5);
    for (std::size_t c = 0; c < columns; ++c) {
        batch.children.push_back(maker.column(table.plan.columns[c].name.c_str(), batch.array.offset + length));
        table.columns.push_back(choice & 128 && c == 1 ? -1 : static_cast<int>(c));
    }
    Maker::adopt(batch);

    ParsedRows whole;
    if (!table.parse(0, length, whole)) return 0;
    check_sound(whole, table.stop_after, static_cast<std::size_t>(length), 0);
    const ParsedRows named = table.named();
    require(same_meaning(whole, named), "rows are the same with names");
    check_all_named(named, table.plan.bits);
    std::int64_t surveyed;
    if (table.survey(surveyed)) require(surveyed == length, "the survey sees every row");
    if (table.stop_after == 1) return 0;
    require(whole.lines_read == length, "every row is read");
    require(whole.labels.size() + whole.bad.size() == static_cast<std::size_t>(length), "every row is good or bad");
    const std::int64_t cut = length * cut_at / 256;
    ParsedRows head, tail;
    require(table.parse(0, cut, head) && table.parse(cut, length, tail), "what can be read can be read in pieces");
    check_cut(whole, head, tail);
    return 0;
}
