// Python bindings of hashed features: the hash, names on their way, and the table that keeps them.
#include "arrays.hpp"
#include "features/murmur3.hpp"
#include "features/name_table.hpp"
#include "features/new_names.hpp"

#include <cstring>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rarestream {

using features::NameTable;
using features::NewNames;

namespace {

// Text from anywhere: bytes that are no UTF-8 are replaced.
nb::object decoded(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

std::string_view view(const nb::bytes& text) { return {text.c_str(), text.size()}; }

std::uint32_t hash_of(std::string_view space, std::string_view name) {
    return features::murmur3(name, features::murmur3(space, 0));
}

// The names of slots, None where they are not known. The table is unlocked before any Python object is made.
nb::list slot_names(const NameTable& table, In<std::int32_t> slots) {
    std::string text;
    std::vector<std::size_t> ends;
    {
        nb::gil_scoped_release released;
        ends.reserve(slots.size());
        table.names(slots.data(), slots.size(), text, ends);
    }
    nb::list out;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        out.append(end > begin ? decoded(std::string_view(text).substr(begin, end - begin)) : nb::object(nb::none()));
        begin = end;
    }
    return out;
}

nb::object slot_name(const NameTable& table, std::int32_t slot) {
    std::string text;
    std::vector<std::size_t> ends;
    table.names(&slot, 1, text, ends);
    return text.empty() ? nb::object(nb::none()) : decoded(text);
}

nb::object bytes_of(const std::string& text) {
    std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[text.size()]);
    std::memcpy(copy.get(), text.data(), text.size());
    return nb::cast(owned(std::move(copy), text.size()));
}

// (slots, hashes, ends, text)
nb::tuple exported(const NameTable& table, In<std::int32_t> slots, bool colliding) {
    features::NameArrays found;
    {
        nb::gil_scoped_release released;
        found = table.to_arrays(slots.data(), slots.size(), colliding);
    }
    return nb::make_tuple(copied(found.slots), copied(found.hashes), copied(found.ends), bytes_of(found.text));
}

// (hashes, lengths, text, lost)
nb::tuple changes(NameTable& table) {
    features::NameChanges found;
    {
        nb::gil_scoped_release released;
        found = table.take_changes();
    }
    return nb::make_tuple(copied(found.hashes), copied(found.lengths), bytes_of(found.text), copied(found.lost));
}

void replay(NameTable& table, In<std::int32_t> hashes, In<std::uint16_t> lengths, In<std::uint8_t> text,
            In<std::int32_t> lost) {
    nb::gil_scoped_release released;
    table.replay({{hashes.data(), hashes.data() + hashes.size()},
                  {lengths.data(), lengths.data() + lengths.size()},
                  {reinterpret_cast<const char*>(text.data()), text.size()},
                  {lost.data(), lost.data() + lost.size()}});
}

void load(NameTable& table, In<std::int32_t> slots, In<std::int32_t> hashes, In<std::int64_t> ends, In<std::uint8_t> text) {
    if (slots.size() != hashes.size() || slots.size() != ends.size())
        throw std::invalid_argument("names: slots, hashes and ends must have the same length");
    nb::gil_scoped_release released;
    table.load(slots.data(), hashes.data(), ends.data(), slots.size(),
               std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
}

}  // namespace

void bind_features(nb::module_& m) {
    m.def(
        "murmur3", [](nb::bytes text, std::uint32_t seed) { return features::murmur3(view(text), seed); },
        no_convert("text"), no_convert("seed"));
    m.def(
        "feature_hash", [](nb::bytes space, nb::bytes name) { return hash_of(view(space), view(name)); },
        no_convert("namespace"), no_convert("name"));

    nb::class_<NewNames>(m, "NewNames")
        .def(nb::init<>())
        .def(
            "add",
            [](NewNames& names, nb::bytes space, nb::bytes name) {
                const std::uint32_t hash = hash_of(view(space), view(name));
                names.add(hash, view(space), view(name));
                return hash;
            },
            no_convert("namespace"), no_convert("name"))
        .def("__len__", &NewNames::size)
        .def("to_list", [](const NewNames& names) {
            nb::list out;
            for (std::size_t i = 0; i < names.size(); ++i)
                out.append(nb::make_tuple(names.hashes[i], decoded(names.name(i))));
            return out;
        });

    const auto released = nb::call_guard<nb::gil_scoped_release>();  // another thread may hold the lock of the table
    nb::class_<NameTable>(m, "NameTable")
        .def(nb::init<int, std::size_t, bool>(), no_convert("bits"), no_convert("limit_bytes") = std::size_t{64} << 20,
             no_convert("recording") = false)
        .def(
            "copy", [](const NameTable& table) { return new NameTable(table); }, nb::rv_policy::take_ownership, released)
        .def("add", &NameTable::add, no_convert("names"), released)
        .def("merge", &NameTable::merge, no_convert("other"), no_convert("start"), released)
        .def("name", &slot_name, no_convert("slot"))
        .def("names", &slot_names, no_convert("slots"))
        .def("to_arrays", &exported, no_convert("slots"), no_convert("colliding"))
        .def("load", &load, no_convert("slots"), no_convert("hashes"), no_convert("ends"), no_convert("text"))
        .def("take_changes", &changes)
        .def("replay", &replay, no_convert("hashes"), no_convert("lengths"), no_convert("text"), no_convert("lost"))
        .def(
            "restore",
            [](NameTable& table, std::size_t collisions, bool full, In<std::int32_t> slots) {
                nb::gil_scoped_release unlocked;
                table.restore(collisions, full, slots.data(), slots.size());
            },
            no_convert("collisions"), no_convert("full"), no_convert("lost"))
        .def("lost_slots",
             [](const NameTable& table) {
                 std::vector<std::int32_t> slots;
                 {
                     nb::gil_scoped_release unlocked;
                     slots = table.lost_slots();
                 }
                 return copied(slots);
             })
        .def("__len__", &NameTable::size, released)
        .def_prop_ro("bits", &NameTable::bits)
        .def_prop_ro("limit_bytes", &NameTable::limit)
        .def_prop_ro("bytes", &NameTable::bytes, released)
        .def_prop_ro("collisions", &NameTable::collisions, released)
        .def_prop_ro("full", &NameTable::full, released)
        .def_prop_ro("lost", &NameTable::lost, released);
}

}  // namespace rarestream
