// Rows that are Python dicts to rows of a table: keys are the columns. The GIL is held.
//
// Text is not copied: a view of a str is good while its dict holds it. Before any code of another type runs, which could
// change the dict, a copy of the dict is made and kept until the row ends.
#pragma once

#include <nanobind/nanobind.h>

#include <datetime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dict_keys.hpp"
#include "features/table.hpp"
#include "parsed_rows.hpp"

namespace rarestream::dicts {

namespace nb = nanobind;

enum class Rule : int {  // beyond those of features::TableRule; the messages are in readers/formats/rows.py
    row = 20,            // a row that is not a dict
    key = 21,            // a key that is not a str
    type = 22,           // a value that cannot be a feature
    surrogate = 23,      // text that is not valid Unicode
    deep = 24,
};

constexpr int DEEPEST = 64;  // dicts inside each other

// Calls the methods of `Sink`, a TableEncoder or a TableSurvey.
template <class Sink>
class Reader {
public:
    // `keys`: those of earlier rows of the same columns.
    Reader(Sink& sink, ParsedRows& rows, Keys& keys) : sink_(sink), rows_(rows), keys_(keys) {}

    // Stops after that many bad rows.
    void read(nb::list rows, std::int64_t stop_after) {
        // The code of other types may change the list.
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const nb::object row = rows[i];
            rows_.lines_read = static_cast<std::int64_t>(i) + 1;
            read_row(row.ptr());
            if (static_cast<std::int64_t>(rows_.bad.size()) >= stop_after) return;
        }
    }

    void read_one(PyObject* row) {
        rows_.lines_read = 1;
        read_row(row);
    }

private:
    enum class Type { missing, text, whole, digits, number, boolean, date, list, set, map, too_large, unknown };

    struct Value {
        Type type = Type::missing;
        std::string_view text = {};  // of text, digits and dates
        std::int64_t whole = 0;
        double number = 0;
        features::Date date = {};
        PyObject* items = nullptr;  // of a list, set or map
    };

    void read_row(PyObject* row) {
        const std::int64_t number = rows_.lines_read - 1;
        fault_ = 0;
        dict_ = nullptr;
        sink_.begin_row();
        Value value;
        if (PyDict_Check(row)) {
            value = {Type::map, {}, 0, 0, {}, row};
        } else if (is_mapping(row)) {
            value = converted(row);
        }
        if (value.type == Type::map) {
            columns(value.items);
        } else {
            break_rule(Rule::row, {}, Py_TYPE(row)->tp_name);
        }
        if (fault_) {
            sink_.drop_row();
            rows_.bad.push_back({number, 0, fault_, token_, field_});
        } else {
            sink_.end_row(number, 0, 0);
        }
        kept_.clear();
    }

    void break_rule(Rule rule, std::string_view field, std::string_view token) {
        if (fault_) return;
        fault_ = static_cast<int>(rule);
        field_.assign(field.substr(0, 128));
        token_.assign(token.substr(0, LONGEST_TOKEN));
    }

    // -- the columns of a row

    void columns(PyObject* dict) {
        dict_ = dict;
        int previous = -1;
        Py_ssize_t position = 0;
        PyObject *key, *value;
        while (!fault_ && PyDict_Next(dict, &position, &key, &value)) {
            std::string_view name;
            if (!key_text(key, name)) return;
            int c = -1, k = keys_.find(previous, name);
            if (k < 0) {
                c = sink_.column(name);
                if (c < 0 && sink_.open()) c = sink_.other_column(name);
                k = keys_.add(previous, name, c);
            } else {
                name = keys_[k].name;
                c = keys_[k].column < -1 ? sink_.other_column(name, keys_[k].hash) : keys_[k].column;
            }
            if (k >= 0) previous = k;
            if (c != -1 && !sink_.ignores(c)) cell(c, name, value);
        }
    }

    bool key_text(PyObject* key, std::string_view& name) {
        if (!PyUnicode_Check(key)) {
            break_rule(Rule::key, {}, Py_TYPE(key)->tp_name);
            return false;
        }
        return text_of(key, name, {});
    }

    void cell(int c, std::string_view name, PyObject* object) {
        if (PyFloat_CheckExact(object)) return sink_.number(c, PyFloat_AS_DOUBLE(object));
        if (PyUnicode_CheckExact(object)) {
            std::string_view text;
            if (text_of(object, text, name)) sink_.string(c, text);
            return;
        }
        const Value value = value_of(object, name);
        switch (value.type) {
            case Type::missing:
                return;
            case Type::text:
                return sink_.string(c, value.text);
            case Type::whole:
                return sink_.whole(c, value.whole);
            case Type::digits:
                return sink_.number_text(c, value.text);
            case Type::number:
                return sink_.number(c, value.number);
            case Type::boolean:
                return sink_.boolean(c, value.whole != 0);
            case Type::date:
                return sink_.date(c, value.date, value.text);
            case Type::list:
            case Type::set:
                sink_.begin_list(c);
                return elements(value, name, [&](std::string_view element) { sink_.element(c, element); });
            case Type::map:
                sink_.begin_map(c);
                path_.assign(name);
                return map(value.items, 2);
            case Type::too_large:
                return sink_.fail(features::TableRule::large, c, "an int of thousands of digits");
            case Type::unknown:
                return break_rule(Rule::type, name, Py_TYPE(object)->tp_name);
        }
    }

    // Calls `element` with the text of each element of a list; those of a set in the order of their text.
    template <class Element>
    void elements(const Value& list, std::string_view field, const Element& element) {
        if (list.type == Type::set) {
            std::vector<std::string_view> texts;
            const nb::object items = nb::steal(PySequence_List(list.items));
            if (!items.is_valid()) throw nb::python_error();
            each_element(items.ptr(), field, [&](std::string_view text) { texts.push_back(text); });
            std::sort(texts.begin(), texts.end());
            for (const std::string_view text : texts) element(text);
        } else {
            each_element(list.items, field, element);
        }
    }

    template <class Element>
    void each_element(PyObject* items, std::string_view field, const Element& element) {
        const bool tuple = PyTuple_Check(items);
        for (Py_ssize_t i = 0; !fault_ && i < (tuple ? PyTuple_GET_SIZE(items) : PyList_GET_SIZE(items)); ++i) {
            const nb::object item = nb::borrow(tuple ? PyTuple_GET_ITEM(items, i) : PyList_GET_ITEM(items, i));
            Value value = value_of(item.ptr(), field);
            if (value.type == Type::list || value.type == Type::set || value.type == Type::map) {
                return sink_.fail(features::TableRule::nested, field, value.type == Type::map ? "{" : "[");
            }
            if (!as_text(value, item.ptr(), field)) continue;
            element(sink_.arena().copy(value.text));
        }
    }

    // Makes any scalar text. False: it is missing, or cannot be a feature.
    bool as_text(Value& value, PyObject* object, std::string_view field) {
        switch (value.type) {
            case Type::text:
            case Type::digits:
            case Type::date:
                return true;
            case Type::whole:
                value.text = sink_.arena().copy(features::NumberText(value.whole).text());
                return true;
            case Type::number:
                if (std::isnan(value.number)) return false;
                if (!std::isfinite(value.number)) {
                    sink_.fail(features::TableRule::finite, field, value.number > 0 ? "inf" : "-inf");
                    return false;
                }
                value.text = sink_.arena().copy(features::NumberText(value.number).text());
                return true;
            case Type::boolean:
                value.text = value.whole ? "true" : "false";
                return true;
            case Type::too_large:
                sink_.fail(features::TableRule::large, field, "an int of thousands of digits");
                return false;
            case Type::unknown:
                break_rule(Rule::type, field, Py_TYPE(object)->tp_name);
                return false;
            default:
                return false;
        }
    }

    // The entries of a dict inside a row, whose path is `path_`.
    void map(PyObject* dict, int depth) {
        if (depth > DEEPEST) return break_rule(Rule::deep, path_, {});
        const nb::object held = nb::borrow(dict);
        const std::uint32_t seed = features::murmur3(path_, 0);
        Py_ssize_t position = 0;
        PyObject *key_object, *item;
        while (!fault_ && PyDict_Next(dict, &position, &key_object, &item)) {
            const nb::object held_key = nb::borrow(key_object), held_item = nb::borrow(item);
            std::string_view key;
            if (!key_text(key_object, key)) return;
            Value value = value_of(item, path_);
            switch (value.type) {
                case Type::whole:
                    sink_.entry(path_, seed, key, static_cast<double>(value.whole));
                    break;
                case Type::digits: {
                    const features::NumberCell found = features::number_cell(value.text);
                    if (found.kind == features::CellKind::too_large) {
                        sink_.fail(features::TableRule::large, path_, value.text);
                    } else {
                        sink_.entry(path_, seed, key, found.value);
                    }
                    break;
                }
                case Type::number:
                    sink_.entry(path_, seed, key, value.number);
                    break;
                case Type::list:
                case Type::set:
                    elements(value, path_, [&](std::string_view element) { sink_.entry(path_, seed, key, element); });
                    break;
                case Type::map: {
                    const std::size_t size = path_.size();
                    path_.append(1, '.').append(key);
                    map(value.items, depth + 1);
                    path_.resize(size);
                    break;
                }
                default:
                    if (as_text(value, item, path_)) sink_.entry(path_, seed, key, value.text);
            }
        }
    }

    // -- values

    Value value_of(PyObject* object, std::string_view field) {
        PyTypeObject* const type = Py_TYPE(object);
        Value value;
        if (type == &PyFloat_Type) {
            value.type = Type::number;
            value.number = PyFloat_AS_DOUBLE(object);
        } else if (PyUnicode_Check(object)) {
            if (text_of(object, value.text, field)) value.type = Type::text;
        } else if (PyBool_Check(object)) {
            value.type = Type::boolean;
            value.whole = object == Py_True;
        } else if (PyLong_Check(object)) {
            return whole_number(object);
        } else if (object == Py_None) {
            return value;
        } else if (PyFloat_Check(object)) {
            value.type = Type::number;
            value.number = PyFloat_AS_DOUBLE(object);
        } else if (PyDict_Check(object)) {
            value.type = Type::map;
            value.items = object;
        } else if (PyList_Check(object) || PyTuple_Check(object)) {
            value.type = Type::list;
            value.items = object;
        } else if (PyAnySet_Check(object)) {
            value.type = Type::set;
            value.items = object;
        } else {
            return converted(object);
        }
        return value;
    }

    bool text_of(PyObject* object, std::string_view& text, std::string_view field) {
        Py_ssize_t size;
        const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
        if (bytes) {
            text = {bytes, static_cast<std::size_t>(size)};
            return true;
        }
        if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) throw nb::python_error();
        PyErr_Clear();
        const nb::object shown = nb::steal(PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"));
        if (!shown.is_valid()) throw nb::python_error();
        break_rule(Rule::surrogate, field, PyBytes_AS_STRING(shown.ptr()));
        return false;
    }

    Value whole_number(PyObject* object) {
        Value value;
        int overflow;
        value.type = Type::whole;
        value.whole = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (!overflow) return value;
        const nb::object digits = nb::steal(PyNumber_ToBase(object, 10));
        if (!digits.is_valid()) {  // Python refuses to write very long numbers
            forget_error();
            value.type = Type::too_large;
            return value;
        }
        value.type = Type::digits;
        text_of(digits.ptr(), value.text, {});
        value.text = sink_.arena().copy(value.text);
        return value;
    }

    // An exception that is not the row's fault, such as Ctrl-C, is raised.
    static void forget_error() {
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) throw nb::python_error();
        PyErr_Clear();
    }

    // A collections.abc.Mapping.
    static bool is_mapping(PyObject* object) {
        const nb::object mapping = nb::module_::import_("collections.abc").attr("Mapping");
        const int found = PyObject_IsInstance(object, mapping.ptr());
        if (found < 0) forget_error();
        return found == 1;
    }

    // Whether a type, of which the name is known, is of a package.
    static bool is_type(PyObject* object, std::string_view package, std::string_view name) {
        std::string_view full = Py_TYPE(object)->tp_name;  // with its module, if the type is not made by a class statement
        const std::size_t dot = full.rfind('.');
        if (full.substr(dot + 1) != name) return false;
        if (dot != full.npos) return full.substr(0, package.size()) == package;
        const nb::object module =
            nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
        if (!module.is_valid() || !PyUnicode_Check(module.ptr())) {
            PyErr_Clear();
            return false;
        }
        const char* const text = PyUnicode_AsUTF8(module.ptr());
        if (!text) PyErr_Clear();
        return text && std::string_view(text).substr(0, package.size()) == package;
    }

    // Values of other types, whose code runs here.
    Value converted(PyObject* object) {
        const nb::object held = nb::borrow(object);
        if (dict_) {
            kept_.push_back(nb::steal(PyDict_Copy(dict_)));
            if (!kept_.back().is_valid()) throw nb::python_error();
            dict_ = nullptr;
        }
        Value value;
        if (is_type(object, "pandas", "NaTType") || is_type(object, "pandas", "NAType")) return value;
        if (!PyDateTimeAPI) {
            PyDateTime_IMPORT;
            if (!PyDateTimeAPI) throw nb::python_error();
        }
        if (PyDate_Check(object)) return date_value(object);  // a datetime, too
        if (is_type(object, "numpy", "bool") || is_type(object, "numpy", "bool_")) {
            value.type = Type::boolean;
            value.whole = PyObject_IsTrue(object) == 1;
            return value;
        }
        if (is_type(object, "numpy", "ndarray")) return kept(PyObject_CallMethod(object, "tolist", nullptr));
        if (is_type(object, "numpy", "datetime64")) return numpy_date(object);
        value.type = Type::unknown;
        if (is_type(object, "numpy", "timedelta64") || PyComplex_Check(object) || is_type(object, "numpy", "complex64")) {
            return value;
        }
        if (is_type(object, "decimal", "Decimal")) return decimal(object);
        const PyNumberMethods* const numbers = Py_TYPE(object)->tp_as_number;
        if (numbers && numbers->nb_index) return kept(PyNumber_Index(object));
        if (numbers && numbers->nb_float) return float_value(object);
        if (is_mapping(object)) {
            const nb::object copy = nb::steal(PyDict_New());
            if (!copy.is_valid()) throw nb::python_error();
            if (PyDict_Update(copy.ptr(), object) != 0) {
                forget_error();
            } else {
                return kept(copy.inc_ref().ptr());
            }
        }
        return value;
    }

    static Value float_value(PyObject* object) {
        Value value;
        value.type = Type::number;
        value.number = PyFloat_AsDouble(object);
        if (value.number == -1 && PyErr_Occurred()) {
            forget_error();
            value.type = Type::unknown;
        }
        return value;
    }

    // By its digits: it may have more than a float.
    Value decimal(PyObject* object) {
        Value value;
        const nb::object digits = nb::steal(PyObject_Str(object));
        if (!digits.is_valid() || !PyUnicode_Check(digits.ptr())) return kept(nullptr);
        text_of(digits.ptr(), value.text, {});
        const features::CellKind kind = features::number_cell(value.text).kind;
        if (kind == features::CellKind::not_finite || kind == features::CellKind::text) return float_value(object);
        value.type = Type::digits;
        value.text = sink_.arena().copy(value.text);
        return value;
    }

    // What the code of another type returned, kept until the row ends.
    Value kept(PyObject* object) {
        Value value;
        value.type = Type::unknown;
        if (!object) {
            forget_error();
            return value;
        }
        kept_.push_back(nb::steal(object));
        return is_plain(object) || PyDate_Check(object) ? value_of(object, {}) : value;
    }

    static bool is_plain(PyObject* object) {
        return PyUnicode_Check(object) || PyFloat_Check(object) || PyLong_Check(object) || object == Py_None ||
               PyDict_Check(object) || PyList_Check(object);
    }

    // Those of days, and of fractions of a second that datetime has, are dates; others are rounded to those.
    Value numpy_date(PyObject* object) {
        const nb::object item = nb::steal(PyObject_CallMethod(object, "item", nullptr));
        if (!item.is_valid()) return kept(nullptr);
        if (!PyLong_Check(item.ptr())) return kept(nb::object(item).release().ptr());
        const nb::object rounded = nb::steal(PyObject_CallMethod(object, "astype", "s", "datetime64[us]"));
        if (!rounded.is_valid()) return kept(nullptr);
        return kept(PyObject_CallMethod(rounded.ptr(), "item", nullptr));
    }

    Value date_value(PyObject* object) {
        Value value;
        value.type = Type::date;
        std::int64_t seconds = 86400 * features::days_since_1970(PyDateTime_GET_YEAR(object), PyDateTime_GET_MONTH(object),
                                                                 PyDateTime_GET_DAY(object));
        const bool has_time = PyDateTime_Check(object);
        bool zone = false;
        int micros = 0;
        if (has_time) {
            seconds += 3600 * PyDateTime_DATE_GET_HOUR(object) + 60 * PyDateTime_DATE_GET_MINUTE(object) +
                       PyDateTime_DATE_GET_SECOND(object);
            micros = PyDateTime_DATE_GET_MICROSECOND(object);
            if (PyDateTime_DATE_GET_TZINFO(object) != Py_None) {
                const nb::object offset = nb::steal(PyObject_CallMethod(object, "utcoffset", nullptr));
                if (!offset.is_valid()) {
                    forget_error();
                    value.type = Type::unknown;
                    return value;
                }
                if (PyDelta_Check(offset.ptr())) {
                    zone = true;
                    seconds -= 86400 * std::int64_t{PyDateTime_DELTA_GET_DAYS(offset.ptr())} +
                               PyDateTime_DELTA_GET_SECONDS(offset.ptr());
                }
            }
        }
        value.date = features::date_of(seconds, has_time);
        value.text = date_text(seconds, micros, has_time, zone);
        return value;
    }

    // As isoformat writes it, but with as many digits as are needed: 2024-02-29, 2024-02-29T13:05:59.25+00:00.
    std::string_view date_text(std::int64_t seconds, int micros, bool has_time, bool zone) {
        const std::int64_t days = seconds / 86400 - (seconds % 86400 < 0), rest = seconds - days * 86400;
        char* const text = sink_.arena().allocate(48);
        char* to = text;
        const auto put = [&to](char before, int value, int digits) {
            if (before) *to++ = before;
            for (int i = digits; i-- > 0; value /= 10) to[i] = static_cast<char>('0' + value % 10);
            to += digits;
        };
        const features::Day day = features::day_of(days);
        put(0, static_cast<int>(day.year), 4);
        put('-', day.month, 2);
        put('-', day.day, 2);
        if (has_time) {
            put('T', static_cast<int>(rest / 3600), 2);
            put(':', static_cast<int>(rest / 60 % 60), 2);
            put(':', static_cast<int>(rest % 60), 2);
            if (micros) put('.', micros, 6);
            while (micros && to[-1] == '0') --to;
            if (zone) to = std::copy_n("+00:00", 6, to);
        }
        return {text, static_cast<std::size_t>(to - text)};
    }

    Sink& sink_;
    ParsedRows& rows_;
    Keys& keys_;
    std::string path_;
    // The current row.
    PyObject* dict_ = nullptr;  // while it has not been copied
    std::vector<nb::object> kept_;
    int fault_ = 0;
    std::string token_, field_;
};

}  // namespace rarestream::dicts
