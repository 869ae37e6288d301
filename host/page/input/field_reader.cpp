#include "page/input/field_reader.hpp"

#include <cmath>

namespace kiln::host::page {
namespace {

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

std::string words_for(const Json& found) {
  switch (found.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a text";
    case Json::value_t::boolean:
      return found.get<bool>() ? "true" : "false";
    default:
      return json_text(found);
  }
}

constexpr const char* an_amount = "a number of at least 0";

bool is_amount(const Json& value) {
  return value.is_number() && value.get<double>() >= 0 && std::isfinite(value.get<double>());
}

}  // namespace

FieldReader::FieldReader(const Json& object, std::string place, Status& problem)
    : object_(&object), place_(std::move(place)), problem_(&problem) {
  if (object.is_object()) return;
  if (problem_->ok()) {
    *problem_ =
        corrupt((place_.empty() ? "the document" : place_) + ": expected an object, found " + words_for(object));
  }
  object_ = &empty_object();
}

std::string FieldReader::place_of(const std::string& name) const { return place_.empty() ? name : place_ + "." + name; }

void FieldReader::refuse(const std::string& why) {
  if (problem_->ok()) *problem_ = corrupt(place_.empty() ? why : place_ + ": " + why);
}

void FieldReader::expected(const char* name, const char* what, const Json& found) {
  if (problem_->ok()) *problem_ = corrupt(place_of(name) + ": expected " + what + ", found " + words_for(found));
}

const Json* FieldReader::at_or_null(const char* name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json* FieldReader::at(const char* name, const char* what) {
  const auto found = object_->find(name);
  if (found != object_->end()) return &*found;
  if (problem_->ok()) *problem_ = corrupt(place_of(name) + ": expected " + what + ", found nothing of that name");
  return nullptr;
}

bool FieldReader::has(const char* name) const { return at_or_null(name) != nullptr; }

double FieldReader::number(const char* name) {
  const Json* value = at(name, "a number");
  if (value == nullptr) return 0;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  expected(name, "a number", *value);
  return 0;
}

double FieldReader::amount(const char* name) {
  const Json* value = at(name, an_amount);
  if (value == nullptr) return 0;
  if (is_amount(*value)) return value->get<double>();
  expected(name, an_amount, *value);
  return 0;
}

std::optional<double> FieldReader::amount_or_null(const char* name) {
  if (!has(name)) return std::nullopt;
  return amount(name);
}

std::uint64_t FieldReader::count(const char* name) {
  const Json* value = at(name, "a whole number of at least 0");
  if (value == nullptr) return 0;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  expected(name, "a whole number of at least 0", *value);
  return 0;
}

std::string FieldReader::text(const char* name) {
  const Json* value = at(name, "a text");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  expected(name, "a text", *value);
  return {};
}

std::string FieldReader::text_or_null(const char* name) { return has(name) ? text(name) : std::string(); }

bool FieldReader::truth(const char* name) {
  const Json* value = at(name, "true or false");
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  expected(name, "true or false", *value);
  return false;
}

std::optional<bool> FieldReader::truth_or_null(const char* name) {
  if (!has(name)) return std::nullopt;
  return truth(name);
}

FieldReader FieldReader::object(const char* name) {
  const Json* value = at(name, "an object");
  return {value == nullptr ? empty_object() : *value, place_of(name), *problem_};
}

std::optional<FieldReader> FieldReader::object_or_null(const char* name) {
  if (!has(name)) return std::nullopt;
  return object(name);
}

std::vector<FieldReader> FieldReader::objects(const char* name) {
  std::vector<FieldReader> all;
  const Json* value = at(name, "an array");
  if (value == nullptr) return all;
  if (!value->is_array()) {
    expected(name, "an array", *value);
    return all;
  }
  all.reserve(value->size());
  for (std::size_t i = 0; i < value->size(); ++i) {
    all.emplace_back((*value)[i], place_of(name) + "[" + std::to_string(i) + "]", *problem_);
  }
  return all;
}

}  // namespace kiln::host::page
