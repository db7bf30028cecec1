// Python bindings of Arrow data: capsules of the Arrow PyCapsule interface to rows. No Arrow library is needed.
#include "arrays.hpp"
#include "arrow/abi.hpp"
#include "arrow/rows.hpp"
#include "table_parser.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rarestream {

namespace {

using arrow::Owned;

template <class Struct>
Struct* in_capsule(nb::handle capsule, const char* name) {
    if (!PyCapsule_IsValid(capsule.ptr(), name)) {
        throw nb::type_error((std::string("expected a capsule named ") + name).c_str());
    }
    auto* const inside = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (!inside->release) throw std::invalid_argument(std::string(name) + ": was consumed before");
    return inside;
}

using SharedSchema = std::shared_ptr<Owned<ArrowSchema>>;

SharedSchema checked_schema(Owned<ArrowSchema>&& schema) {
    if (arrow::format_of(*schema) != "+s" || schema->dictionary) {
        throw std::invalid_argument("a table has columns, but this is a single column of Arrow type '" +
                                    std::string(arrow::format_of(*schema)) + "'");
    }
    if (schema->n_children < 0 || (schema->n_children > 0 && !schema->children)) {
        throw std::invalid_argument("the Arrow schema lacks its columns");
    }
    for (std::int64_t i = 0; i < schema->n_children; ++i) {
        if (!schema->children[i]) throw std::invalid_argument("the Arrow schema lacks its columns");
    }
    return std::make_shared<Owned<ArrowSchema>>(std::move(schema));
}

nb::list columns_of(const SharedSchema& schema) {
    nb::list columns;
    for (std::int64_t i = 0; i < (*schema)->n_children; ++i) {
        const ArrowSchema& column = *(*schema)->children[i];
        columns.append(nb::make_tuple(python_text(arrow::name_of(column)), arrow::type_word(column)));
    }
    return columns;
}

// Some rows of a table. Its memory belongs to the producer, and is released with the last reference.
struct ArrowBatch {
    SharedSchema schema;
    Owned<ArrowArray> array;

    ArrowBatch(SharedSchema its_schema, Owned<ArrowArray>&& its_array)
        : schema(std::move(its_schema)), array(std::move(its_array)) {
        const bool sizes = array->length >= 0 && array->offset >= 0 && array->n_children == (*schema)->n_children;
        if (!sizes || (array->n_children > 0 && !array->children)) {
            throw std::invalid_argument("the Arrow batch is not as its schema says");
        }
        for (std::int64_t i = 0; i < array->n_children; ++i) {
            if (!array->children[i]) throw std::invalid_argument("the Arrow batch lacks a column");
        }
    }
};

ArrowBatch batch_of_capsules(nb::handle schema, nb::handle array) {
    auto* const its_schema = in_capsule<ArrowSchema>(schema, "arrow_schema");
    auto* const its_array = in_capsule<ArrowArray>(array, "arrow_array");
    Owned<ArrowArray> taken(its_array);
    return ArrowBatch(checked_schema(Owned<ArrowSchema>(its_schema)), std::move(taken));
}

// -- A batch of NumPy arrays, for columns that do not come from an Arrow library.

// All that a batch points to. It is kept by the schema and by the array, which may be released at different times.
struct Columns {
    struct Column {
        std::string name, format;
        ArrowSchema schema{};
        ArrowArray array{};
        std::vector<const void*> buffers;
    };

    std::vector<std::unique_ptr<Column>> columns;  // with the dictionaries
    std::vector<ArrowSchema*> schemas;
    std::vector<ArrowArray*> arrays;
    std::vector<In<std::uint8_t>> memory;
};

using ColumnBuffers = std::vector<std::optional<In<std::uint8_t>>>;
using DictionaryArgument = std::tuple<std::string, std::int64_t, ColumnBuffers>;  // Arrow format, length, buffers
using ColumnArgument = std::tuple<std::string, std::string, ColumnBuffers, std::optional<DictionaryArgument>>;

Columns::Column& add_column(Columns& made, const std::string& name, const std::string& format, std::int64_t length,
                            const ColumnBuffers& buffers) {
    made.columns.push_back(std::make_unique<Columns::Column>());
    Columns::Column& column = *made.columns.back();
    column.name = name;
    column.format = format;
    for (const auto& buffer : buffers) {
        column.buffers.push_back(buffer ? buffer->data() : nullptr);
        if (buffer) made.memory.push_back(*buffer);
    }
    column.schema.format = column.format.c_str();
    column.schema.name = column.name.c_str();
    column.array.length = length;
    column.array.null_count = -1;
    column.array.n_buffers = static_cast<std::int64_t>(column.buffers.size());
    column.array.buffers = column.buffers.data();
    return column;
}

template <class Struct>
void release_columns(Struct* inside) {
    delete static_cast<std::shared_ptr<Columns>*>(inside->private_data);
    inside->release = nullptr;
}

ArrowBatch batch_of_buffers(const std::vector<ColumnArgument>& columns, std::int64_t length) {
    auto made = std::make_shared<Columns>();
    for (const auto& [name, format, buffers, dictionary] : columns) {
        Columns::Column& column = add_column(*made, name, format, length, buffers);
        made->schemas.push_back(&column.schema);
        made->arrays.push_back(&column.array);
        if (!dictionary) continue;
        const auto& [entry_format, entries, entry_buffers] = *dictionary;
        Columns::Column& values = add_column(*made, "", entry_format, entries, entry_buffers);
        column.schema.dictionary = &values.schema;
        column.array.dictionary = &values.array;
    }
    ArrowSchema schema{};
    schema.format = "+s";
    schema.name = "";
    schema.n_children = static_cast<std::int64_t>(made->schemas.size());
    schema.children = made->schemas.data();
    schema.private_data = new std::shared_ptr<Columns>(made);
    schema.release = &release_columns<ArrowSchema>;
    Owned<ArrowSchema> its_schema(&schema);
    ArrowArray array{};
    array.length = length;
    array.n_children = schema.n_children;
    array.children = made->arrays.data();
    array.private_data = new std::shared_ptr<Columns>(made);
    array.release = &release_columns<ArrowArray>;
    Owned<ArrowArray> its_array(&array);
    return ArrowBatch(checked_schema(std::move(its_schema)), std::move(its_array));
}

// The batches of a table, one after the other.
class ArrowStream {
public:
    explicit ArrowStream(nb::handle capsule) : stream_(in_capsule<ArrowArrayStream>(capsule, "arrow_array_stream")) {
        Owned<ArrowSchema> schema;
        int code;
        {
            nb::gil_scoped_release released;
            code = stream_->get_schema(stream_.get(), schema.get());
        }
        if (code != 0) fail(code);
        schema_ = checked_schema(std::move(schema));
    }

    nb::list columns() const { return columns_of(schema_); }

    // The GIL is released, as a producer may wait for threads that need it. One that runs Python code takes it itself:
    // other consumers of the interface have no GIL to begin with.
    nb::object next() {
        Owned<ArrowArray> array;
        int code = 0;
        {
            nb::gil_scoped_release released;
            const std::lock_guard<std::mutex> held(lock_);
            if (!ended_) code = stream_->get_next(stream_.get(), array.get());
            ended_ |= code != 0 || array.released();
        }
        if (code != 0) fail(code);
        if (array.released()) return nb::none();
        return nb::cast(ArrowBatch(schema_, std::move(array)));
    }

private:
    [[noreturn]] void fail(int code) {
        const char* const message = stream_->get_last_error ? stream_->get_last_error(stream_.get()) : nullptr;
        throw std::runtime_error(message && *message ? message : std::string("error ") + std::to_string(code));
    }

    Owned<ArrowArrayStream> stream_;
    SharedSchema schema_;
    std::mutex lock_;
    bool ended_ = false;
};

void check_rows(const ArrowBatch& batch, std::int64_t start, std::int64_t stop) {
    if (start < 0 || stop < start || stop > batch.array->length) throw std::invalid_argument("no such rows in the batch");
}

nb::tuple parse_arrow(TableParser& parser, const ArrowBatch& batch, const std::vector<int>& columns, std::int64_t start,
                      std::int64_t stop, std::int64_t stop_after) {
    check_rows(batch, start, stop);
    for (const int c : columns) {
        if (c >= static_cast<int>(parser.plan.columns.size())) throw std::invalid_argument("no such column in the plan");
    }
    return parser.rows([&](features::TableEncoder& encoder, ParsedRows& rows) {
        arrow::Rows<features::TableEncoder>(encoder, **batch.schema, *batch.array, columns)
            .parse(start, stop, rows, stop_after);
    });
}

// `wanted` says of each column whether it is surveyed; all have an entry in what is returned.
nb::tuple survey_arrow(const std::vector<const ArrowBatch*>& batches, const std::vector<bool>& wanted,
                       const std::vector<std::string>& missing, std::int64_t rows) {
    features::TableSurvey survey(missing);
    ParsedRows parsed;
    std::vector<int> columns;
    for (const ArrowBatch* const batch : batches) {
        if (!batch) throw nb::type_error("expected batches");
        if (wanted.size() != static_cast<std::size_t>((*batch->schema)->n_children)) {
            throw std::invalid_argument("the batch has other columns");
        }
        for (std::size_t i = columns.size(); i < wanted.size(); ++i) {
            const int c = survey.other_column(arrow::name_of(*(*batch->schema)->children[i]));
            columns.push_back(wanted[i] ? c : -1);
        }
        nb::gil_scoped_release released;
        const std::int64_t stop = std::min(batch->array->length, rows - survey.rows);
        arrow::Rows<features::TableSurvey>(survey, **batch->schema, *batch->array, columns)
            .parse(0, stop, parsed, INT64_MAX);
    }
    return survey_tuple(survey);
}

}  // namespace

void bind_arrow(nb::module_& m) {
    nb::class_<ArrowBatch>(m, "ArrowBatch")
        .def(nb::new_(&batch_of_capsules), nb::arg("schema"), nb::arg("array"))
        .def_static("of_buffers", &batch_of_buffers, nb::arg("columns"), nb::arg("length"))
        .def("__len__", [](const ArrowBatch& batch) { return batch.array->length; })
        .def_prop_ro("columns", [](const ArrowBatch& batch) { return columns_of(batch.schema); });
    nb::class_<ArrowStream>(m, "ArrowStream")
        .def(nb::init<nb::handle>(), nb::arg("stream"))
        .def_prop_ro("columns", &ArrowStream::columns)
        .def("next", &ArrowStream::next);
    m.attr("TableParser").attr("parse_arrow") = nb::cpp_function(
        &parse_arrow, nb::is_method(), nb::scope(m.attr("TableParser")), nb::name("parse_arrow"), no_convert("batch"),
        nb::kw_only(), nb::arg("columns"), no_convert("start"), no_convert("stop"), no_convert("stop_after"));
    m.def("survey_arrow", &survey_arrow, nb::arg("batches"), nb::kw_only(), nb::arg("wanted"), nb::arg("missing"),
          no_convert("rows"));
}

}  // namespace rarestream
