#include "host/json_schema.hpp"

#include <algorithm>

namespace kiln::test {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

class Checker {
 public:
  explicit Checker(const json& file) : file_(file) {}

  void check(const json& value, const json& schema, const std::string& path) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) fail(path, value, "no such member");
      return;
    }
    for (const auto& [word, rule] : schema.items()) check_rule(value, schema, word, rule, path);
    // Programs must expect members that they do not know; what Kiln prints is to be described all the same.
    if (schema.contains("properties") && !schema.contains("additionalProperties")) {
      check_others(value, schema, json(false), path);
    }
  }

  std::vector<std::string> failures;

 private:
  void fail(const std::string& path, const json& value, const std::string& expected) {
    failures.push_back((path.empty() ? "/" : path) + ": found " + value.dump().substr(0, 120) + ", expected " +
                       expected);
  }

  void check_rule(const json& value, const json& schema, const std::string& word, const json& rule,
                  const std::string& path) {
    if (word == "description" || word == "title" || word == "$comment") return;
    if (word == "$ref") {
      const std::string to = rule.get<std::string>();
      if (!to.starts_with("#")) return fail(path, rule, "a $ref within the file");
      return check(value, file_.at(json::json_pointer(to.substr(1))), path);
    }
    if (word == "type") {
      const json types = rule.is_array() ? rule : json::array({rule});
      const bool any = std::ranges::any_of(types, [&](const json& type) { return has_type(value, type); });
      if (!any) fail(path, value, rule.dump());
    } else if (word == "const") {
      if (value != rule) fail(path, value, rule.dump());
    } else if (word == "enum") {
      if (std::ranges::find(rule, value) == rule.end()) fail(path, value, "one of " + rule.dump());
    } else if (word == "minimum") {
      if (value.is_number() && value.get<double>() < rule.get<double>()) fail(path, value, "at least " + rule.dump());
    } else if (word == "required") {
      for (const json& name : rule) {
        if (value.is_object() && !value.contains(name.get<std::string>())) fail(path, value, "a member " + name.dump());
      }
    } else if (word == "properties") {
      for (const auto& [name, member] : rule.items()) {
        if (value.is_object() && value.contains(name)) check(value.at(name), member, path + "/" + name);
      }
    } else if (word == "additionalProperties") {
      check_others(value, schema, rule, path);
    } else if (word == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
        check(value[i], rule, path + "/" + std::to_string(i));
      }
    } else if (word == "anyOf") {
      const bool any =
          std::ranges::any_of(rule, [&](const json& one) { return schema_failures(value, one, file_).empty(); });
      if (!any) fail(path, value, "one of the forms of anyOf");
    } else {
      fail(path, json(word), "a rule that this test knows");
    }
  }

  void check_others(const json& value, const json& schema, const json& rule, const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& [name, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(name)) continue;
      check(member, rule, path + "/" + name);
    }
  }

  const json& file_;
};

}  // namespace

std::vector<std::string> schema_failures(const json& value, const json& schema, const json& file) {
  Checker checker(file);
  checker.check(value, schema, "");
  return std::move(checker.failures);
}

}  // namespace kiln::test
