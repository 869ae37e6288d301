#include "codec/declarations.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codec/preprocessor.hpp"

namespace kiln::opengl::glsl {
namespace {

constexpr std::size_t most_resources = 4096;  // of one declaration; what has more is not listed
constexpr std::size_t most_nesting = 16;      // of structs in structs

bool contains(Tokens tokens, std::string_view word) {
  return std::ranges::find(tokens, word, &Token::text) != tokens.end();
}

Access access_of(Tokens qualifiers) {
  if (contains(qualifiers, "readonly")) return contains(qualifiers, "writeonly") ? Access::read_write : Access::read;
  return contains(qualifiers, "writeonly") ? Access::write : Access::read_write;
}

// Of the members' own qualifiers, where the block has none: what all of them have.
Access access_of_members(Tokens members) {
  std::optional<Access> common;
  for (const Tokens member : split(members, ";")) {
    if (member.empty()) continue;
    const Access access = access_of(member);
    if (common.value_or(access) != access) return Access::read_write;
    common = access;
  }
  return common.value_or(Access::read_write);
}

struct Part {  // of a name that dots join
  std::string_view name;
  std::vector<std::uint32_t> lengths;
};

struct Declarator {
  Part part;
  std::string_view type;
  bool has_default = false;
};

// "a", "a[0]", "a[1]", …: with the first `indices` of its dimensions.
std::vector<std::string> with_indices(const std::vector<std::string>& prefixes, const Part& part, std::size_t indices) {
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes) names.push_back(prefix + std::string(part.name));
  for (std::size_t i = 0; i < indices; ++i) {
    std::vector<std::string> longer;
    if (part.lengths[i] > most_resources / std::max<std::size_t>(names.size(), 1)) return {};
    for (const std::string& name : names) {
      for (std::uint32_t k = 0; k < part.lengths[i]; ++k) longer.push_back(name + "[" + std::to_string(k) + "]");
    }
    names = std::move(longer);
  }
  return names;
}

class Reader {
 public:
  explicit Reader(Tokens tokens) : all_(tokens), rest_(tokens) {}

  std::vector<Declaration> all() {
    while (!rest_.empty()) read_one();
    return std::move(declared_);
  }

 private:
  // A declaration ends with ";", a function with its body.
  void read_one() {
    std::size_t at = 0;
    bool initialised = false;
    while (at < rest_.size() && rest_[at].text != ";" && (initialised || rest_[at].text != "{")) {
      initialised = initialised || rest_[at].text == "=";
      at = is_opening(rest_[at].text) ? past_brackets(rest_, at) : at + 1;
    }
    const Tokens head = rest_.first(std::min(at, rest_.size()));
    if (at >= rest_.size() || rest_[at].text == ";") {
      rest_ = rest_.subspan(std::min(at + 1, rest_.size()));
      if (contains(head, "uniform")) return read_uniforms(head, head, {});
      if (contains(head, "const")) read_constants(head);
      return;
    }
    const Tokens members = in_brackets(rest_, at);
    rest_ = rest_.subspan(past_brackets(rest_, at));
    if (!head.empty() && head.back().text == ")") return;  // a function, which ends without a ";"
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end].text != ";") ++end;
    const Tokens behind = rest_.first(end);
    rest_ = rest_.subspan(std::min(end + 1, rest_.size()));
    if (contains(head, "struct")) {
      const std::string_view name = head.back().text == "struct" ? std::string_view() : head.back().text;
      structs_[name] = members;
      if (contains(head, "uniform")) read_uniforms(head, behind, name);
    } else if (contains(head, "buffer") || contains(head, "uniform")) {
      read_block(head, members, behind);
    }
  }

  void read_block(Tokens head, Tokens members, Tokens instance) {
    Declaration& block = declared_.emplace_back();
    block.kind = contains(head, "buffer") ? ResourceKind::storage_block : ResourceKind::uniform_block;
    block.name = head.back().text;
    block.number = binding_in(head);
    block.access = access_of(head);
    if (block.access == Access::read_write) block.access = access_of_members(members);
    block.mentioned = is_mentioned(members, instance);
    for (const Tokens member : split(members, ";")) {
      for (const Declarator& each : declarators_in(member, {})) {
        if (!is_named_again(each.part.name)) block.unread.emplace_back(each.part.name);
      }
    }
    add_types(members, block.members, 0);
    const Part part{head.back().text, lengths_in(instance)};
    block.lengths = part.lengths;
    block.resources = with_indices({""}, part, part.lengths.size());
  }

  void add_types(Tokens members, std::vector<std::string>& types, std::size_t depth) {
    for (const Tokens member : split(members, ";")) {
      for (const Declarator& each : declarators_in(member, {})) {
        const auto found = structs_.find(each.type);
        if (found == structs_.end() || depth == most_nesting) {
          types.emplace_back(each.type);
        } else if (types.size() < most_resources) {
          add_types(found->second, types, depth + 1);
        }
      }
    }
  }

  // Whether the name stands in the text more than once.
  bool is_named_again(std::string_view name) {
    if (++asked_ <= most_searches) {
      const auto is_it = [&](const Token& token) { return token.text == name; };
      const auto first = std::ranges::find_if(all_, is_it);
      return first != all_.end() && std::find_if(first + 1, all_.end(), is_it) != all_.end();
    }
    if (mentions_.empty()) {
      for (const Token& token : all_) {
        if (is_name(token.text)) ++mentions_[token.text];
      }
    }
    return mentions_[name] > 1;
  }

  // A name that something else has too counts.
  bool is_mentioned(Tokens members, Tokens instance) {
    if (!instance.empty()) return is_named_again(instance.front().text);
    for (const Tokens member : split(members, ";")) {
      for (const Declarator& each : declarators_in(member, {})) {
        if (is_named_again(each.part.name)) return true;
      }
    }
    return false;
  }

  void read_uniforms(Tokens qualifiers, Tokens declarators, std::optional<std::string_view> type) {
    for (const Declarator& each : declarators_in(declarators, type)) {
      if (each.part.name == "uniform") continue;  // layout(…) uniform;
      Declaration uniform;
      uniform.kind = ResourceKind::uniform;
      uniform.number = binding_in(qualifiers);
      uniform.access = access_of(qualifiers);
      uniform.format = format_in(qualifiers);
      uniform.has_default = each.has_default;
      add_leaves(uniform, each, {""}, 0);
    }
  }

  // The uniform, or each member of it where its type is a struct. `prefixes`: what OpenGL's names begin with.
  void add_leaves(Declaration uniform, const Declarator& at, const std::vector<std::string>& prefixes,
                  std::size_t depth) {
    uniform.name += at.part.name;
    const std::size_t dimensions = at.part.lengths.size();
    const auto found = structs_.find(at.type);
    if (found == structs_.end() || depth == most_nesting) {
      uniform.type = at.type;
      uniform.lengths = at.part.lengths;
      uniform.resources = with_indices(prefixes, at.part, dimensions == 0 ? 0 : dimensions - 1);
      declared_.push_back(std::move(uniform));
      return;
    }
    uniform.name += ".";
    std::vector<std::string> inner = with_indices(prefixes, at.part, dimensions);
    for (std::string& name : inner) name += ".";
    for (const Tokens member : split(found->second, ";")) {
      for (const Declarator& each : declarators_in(member, {})) add_leaves(uniform, each, inner, depth + 1);
    }
  }

  // QUALIFIERS TYPE a, b[2], c = 1.0. type: known already, and not among the tokens.
  std::vector<Declarator> declarators_in(Tokens tokens, std::optional<std::string_view> type) {
    std::vector<Declarator> all;
    std::vector<std::uint32_t> of_type;  // float[2] a[3] is an array of 3 arrays of 2
    for (const Tokens piece : split(tokens, ",")) {
      Declarator one;
      for (std::size_t at = 0; at < piece.size();) {
        if (piece[at].text == "=") {
          one.has_default = true;
          break;
        }
        if (is_name(piece[at].text)) {
          if (!type && all.empty() && !one.part.name.empty()) {
            one.type = one.part.name;
            of_type = std::exchange(one.part.lengths, {});
          }
          one.part.name = piece[at].text;
        } else if (piece[at].text == "[") {
          one.part.lengths.push_back(length_of(in_brackets(piece, at)));
        }
        at = is_opening(piece[at].text) ? past_brackets(piece, at) : at + 1;
      }
      if (one.part.name.empty()) continue;
      if (type) one.type = *type;
      if (!all.empty()) one.type = all.front().type;
      one.part.lengths.insert(one.part.lengths.end(), of_type.begin(), of_type.end());
      all.push_back(std::move(one));
    }
    return all;
  }

  std::vector<std::uint32_t> lengths_in(Tokens tokens) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t at = 0; at < tokens.size();
         at = is_opening(tokens[at].text) ? past_brackets(tokens, at) : at + 1) {
      if (tokens[at].text == "[") lengths.push_back(length_of(in_brackets(tokens, at)));
    }
    return lengths;
  }

  // const int N = 4 * M;
  void read_constants(Tokens head) {
    for (const Tokens piece : split(head, ",")) {
      const auto equals = std::ranges::find(piece, "=", &Token::text);
      const auto at = static_cast<std::size_t>(equals - piece.begin());
      if (equals == piece.end() || at == 0 || !is_name(piece[at - 1].text)) continue;
      std::vector<Token> value{Token{"("}};
      const std::vector<Token> text = with_constants(piece.subspan(at + 1));
      value.insert(value.end(), text.begin(), text.end());
      value.push_back(Token{")"});
      if (value.size() <= most_resources) constants_[piece[at - 1].text] = std::move(value);
    }
  }

  std::vector<Token> with_constants(Tokens tokens) const {
    std::vector<Token> all;
    for (const Token& token : tokens) {
      const auto found = constants_.find(token.text);
      if (found == constants_.end()) {
        all.push_back(token);
      } else if (all.size() <= most_resources) {
        all.insert(all.end(), found->second.begin(), found->second.end());
      }
    }
    return all;
  }

  // nullopt: not a constant expression of integers that is known here.
  std::optional<std::int64_t> value_of(Tokens tokens) const {
    const std::vector<Token> text = with_constants(tokens);
    if (text.empty() || std::ranges::any_of(text, [](const Token& token) { return is_name(token.text); })) {
      return std::nullopt;
    }
    return value_of_condition(text);
  }

  std::uint32_t length_of(Tokens tokens) const {
    const std::int64_t value = value_of(tokens).value_or(0);
    return value > 0 && value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
  }

  static ImageFormat format_in(Tokens qualifiers) {
    for (std::size_t at = 0; at + 1 < qualifiers.size(); ++at) {
      if (qualifiers[at].text != "layout") continue;
      for (const Tokens one : split(in_brackets(qualifiers, at + 1), ",")) {
        const auto format = one.empty() ? std::nullopt : image_format_named(one[0].text);
        if (format) return *format;
      }
    }
    return ImageFormat::declared;
  }

  std::optional<std::uint32_t> binding_in(Tokens qualifiers) const {
    for (std::size_t at = 0; at + 1 < qualifiers.size(); ++at) {
      if (qualifiers[at].text != "layout") continue;
      for (const Tokens one : split(in_brackets(qualifiers, at + 1), ",")) {
        if (one.size() < 3 || one[0].text != "binding") continue;
        const std::optional<std::int64_t> value = value_of(one.subspan(2));
        return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
      }
    }
    return 0;
  }

  static constexpr int most_searches = 32;  // more take longer than counting every name

  const Tokens all_;
  Tokens rest_;
  int asked_ = 0;
  std::unordered_map<std::string_view, std::size_t> mentions_;  // how often each name stands in the text
  std::map<std::string_view, Tokens> structs_;                  // their members
  std::map<std::string_view, std::vector<Token>> constants_;
  std::vector<Declaration> declared_;
};

}  // namespace

std::vector<Declaration> declarations(Tokens tokens) { return Reader(tokens).all(); }

}  // namespace kiln::opengl::glsl
