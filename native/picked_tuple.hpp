// What a Picker found, as the tuple that readers/picking.py takes.
#pragma once

#include "arrays.hpp"
#include "parsed_rows_tuple.hpp"
#include "picking.hpp"

namespace rarestream {

inline nb::object python_list(const picking::Texts& texts) {
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(texts.ends.size())));
    if (!list.is_valid()) throw nb::python_error();
    std::size_t begin = 0, i = 0;
    for (const std::size_t end : texts.ends) {
        PyObject* const text = PyBytes_FromStringAndSize(texts.bytes.data() + begin, static_cast<Py_ssize_t>(end - begin));
        if (!text) throw nb::python_error();
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i++), text);
        begin = end;
    }
    return list;
}

// (rows, keys, times, labels, lines, lines_read, bad); texts are lists of bytes.
inline nb::tuple picked_tuple(const picking::Picker& picker, const ParsedRows& parsed) {
    return nb::make_tuple(python_list(picker.rows), python_list(picker.keys), copied(picker.times),
                          python_list(picker.labels), copied(picker.lines), parsed.lines_read, python_bad_rows(parsed));
}

}  // namespace rarestream
