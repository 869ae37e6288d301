#include "dynamic_shaders/families/user/loop_tree.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>

namespace kiln::dynamic_shaders {
namespace {

using Names = std::set<std::string_view>;

constexpr int most_depth = 200;  // of statements in one another; the stack is finite

// Takes the first ones off.
Tokens take(Tokens& rest, std::size_t count) {
  const Tokens taken = rest.first(count);
  rest = rest.subspan(count);
  return taken;
}

// Takes off the brackets that `rest` begins with; what is in them.
Tokens take_brackets(Tokens& rest) {
  const Tokens inside = in_brackets(rest, 0);
  take(rest, past_brackets(rest, 0));
  return inside;
}

bool begins_with(Tokens tokens, std::string_view text) { return !tokens.empty() && tokens[0].text == text; }

// Functions that give a value to a variable that they are handed.
Names writers_in(Tokens tokens) {
  Names writers;
  std::vector<std::string_view> open;  // what stands before each bracket that is open
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (is_opening(text)) open.push_back(i == 0 ? std::string_view() : tokens[i - 1].text);
    if (is_closing(text) && !open.empty()) open.pop_back();
    if ((text == "out" || text == "inout") && !open.empty()) writers.insert(open.back());
  }
  return writers;
}

bool assigns(std::string_view text) {
  static constexpr std::array<std::string_view, 11> signs = {
      "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
  return std::ranges::find(signs, text) != signs.end();
}

// Tells which names are those of a declaration: `int a = 8, b[2], c = 8;` has three.
class Declarators {
 public:
  // To be asked of each token in its turn, with those next to it.
  bool is_one(std::string_view before, std::string_view text, std::string_view after) {
    if (is_opening(text)) ++depth_;
    if (is_closing(text)) --depth_;
    if (is_scalar_type(text) && is_name(after)) open_ = depth_;
    if (depth_ < open_ || (depth_ == open_ && text == ";")) open_ = none;
    return open_ == depth_ && is_name(text) && (is_scalar_type(before) || before == ",");
  }

 private:
  static constexpr int none = std::numeric_limits<int>::max();
  int depth_ = 0;
  int open_ = none;  // the depth of the declaration that is not at its end
};

// Names that are given a value behind their declaration, be it by a function that they are handed to.
Names changed_in(Tokens tokens, const Names& writers) {
  Names changed;
  Declarators declarators;
  const auto text = [tokens](std::size_t i) { return i < tokens.size() ? tokens[i].text : std::string_view(); };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view before = i == 0 ? std::string_view() : text(i - 1);
    const std::string_view after = text(i + 1);
    const bool is_declared = declarators.is_one(before, text(i), after);
    if (!is_name(text(i))) continue;
    const bool is_counted = before == "++" || before == "--" || after == "++" || after == "--";
    if (is_counted || (assigns(after) && !is_declared)) changed.insert(text(i));
    if (after != "(" || !writers.contains(text(i))) continue;
    for (const Tokens argument : split(in_brackets(tokens, i + 1), ",")) {
      if (argument.size() == 1) changed.insert(argument[0].text);
    }
  }
  return changed;
}

class Parser {
 public:
  explicit Parser(const Names& writers) : writers_(writers) {}

  std::vector<Statement> statements(Tokens rest) {
    std::vector<Statement> all;
    while (!rest.empty()) all.push_back(statement(rest));
    return all;
  }

 private:
  // Takes it off; an empty one where none is left, or where it stands in too many others.
  Statement statement(Tokens& rest) {
    skip_labels(rest);
    if (depth_ > most_depth) rest = {};
    if (rest.empty()) return {};
    ++depth_;
    Statement made = one(rest);
    --depth_;
    return made;
  }

  // `case 1:`, and [[unroll]] before a loop.
  static void skip_labels(Tokens& rest) {
    for (;;) {
      if (begins_with(rest, "[")) {
        take_brackets(rest);
      } else if (begins_with(rest, "case") || begins_with(rest, "default")) {
        const auto colon = std::ranges::find(rest, ":", &Token::text);
        take(rest, std::min(static_cast<std::size_t>(colon - rest.begin()) + 1, rest.size()));
      } else {
        return;
      }
    }
  }

  Statement one(Tokens& rest) {
    using Kind = Statement::Kind;
    const std::string_view word = rest[0].text;
    Statement made;
    made.line = rest[0].line;
    if (word == "{") {
      made.kind = Kind::block;
      made.inside = statements(take_brackets(rest));
    } else if (word == "if" || word == "switch") {
      made.kind = Kind::block;
      add_branches(rest, made);
    } else if (word == "for" || word == "while") {
      made.kind = word == "for" ? Kind::for_loop : Kind::while_loop;
      made.words = take_head(rest);
      add_body(rest, made);
      // What no compiler takes is a loop of which nothing is known.
      if (word == "for" && split(made.words, ";").size() != 3) made.kind = Kind::while_loop, made.words = {};
    } else if (word == "do") {
      made.kind = Kind::do_loop;
      take(rest, 1);
      add_body(rest, made);
      if (begins_with(rest, "while")) made.words = take_head(rest);
      if (begins_with(rest, ";")) take(rest, 1);
    } else {
      made.words = take_simple(rest);
    }
    return made;
  }

  void add_branches(Tokens& rest, Statement& block) {
    do {  // a chain of else if is no nest, and may be longer than one
      block.inside.emplace_back().words = take_head(rest);
      block.inside.push_back(statement(rest));
      if (!begins_with(rest, "else")) return;
      take(rest, 1);
    } while (begins_with(rest, "if"));
    block.inside.push_back(statement(rest));
  }

  void add_body(Tokens& rest, Statement& loop) {
    const Tokens from_body = rest;
    loop.inside.push_back(statement(rest));
    if (loop.kind == Statement::Kind::for_loop) {
      loop.changed = changed_in(from_body.first(from_body.size() - rest.size()), writers_);
    }
  }

  // A word and the brackets behind it: what is in those.
  static Tokens take_head(Tokens& rest) {
    take(rest, 1);
    if (begins_with(rest, "(")) return take_brackets(rest);
    rest = {};
    return {};
  }

  static Tokens take_simple(Tokens& rest) {
    std::size_t end = 0;
    while (end < rest.size() && rest[end].text != ";") end = past_brackets(rest, end);
    const Tokens words = take(rest, end);
    if (!rest.empty()) take(rest, 1);
    return words;
  }

  const Names& writers_;
  int depth_ = 0;
};

// Finds the functions in which a loop can be met.
class LoopFinder {
 public:
  void read(std::string_view function, Tokens body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const std::string_view text = body[i].text;
      if (text == "for" || text == "while" || text == "do") found_.push_back(function);
      if (is_name(text) && begins_with(body.subspan(i + 1), "(")) callers_[text].push_back(function);
    }
  }

  Names all() {
    Names names;
    while (!found_.empty()) {
      const std::string_view name = found_.back();
      found_.pop_back();
      if (!names.insert(name).second) continue;
      const std::vector<std::string_view>& callers = callers_[name];
      found_.insert(found_.end(), callers.begin(), callers.end());
    }
    return names;
  }

 private:
  std::vector<std::string_view> found_;  // those whose callers have not been looked at
  std::map<std::string_view, std::vector<std::string_view>> callers_;
};

std::vector<FunctionParameter> parameters_of(Tokens tokens) {
  std::vector<FunctionParameter> parameters;
  if (tokens.empty() || (tokens.size() == 1 && tokens[0].text == "void")) return parameters;
  for (Tokens piece : split(tokens, ",")) {
    FunctionParameter& parameter = parameters.emplace_back();
    while (!piece.empty() && is_qualifier(piece[0].text)) {
      parameter.is_written |= piece[0].text == "out" || piece[0].text == "inout";
      piece = piece.subspan(1);
    }
    if (piece.size() == 2) parameter.type = piece[0].text, parameter.name = piece[1].text;
  }
  return parameters;
}

// Takes off a function or a declaration.
void take_outermost(Tokens& rest, Parser& parser, LoopFinder& finder, LoopTree& tree) {
  std::size_t at = 0;
  while (at < rest.size() && rest[at].text != ";") {
    const std::size_t past = past_brackets(rest, at);
    const bool is_function =
        at > 0 && rest[at].text == "(" && is_name(rest[at - 1].text) && begins_with(rest.subspan(past), "{");
    if (is_function) {
      Function& function = tree.functions.emplace_back();
      function.name = rest[at - 1].text;
      function.parameters = parameters_of(in_brackets(rest, at));
      take(rest, past);
      const Tokens body = take_brackets(rest);
      finder.read(function.name, body);
      function.body = parser.statements(body);
      return;
    }
    at = past;
  }
  tree.declarations.push_back(take(rest, at));
  if (!rest.empty()) take(rest, 1);
}

}  // namespace

LoopTree loop_tree(Tokens tokens) {
  const Names writers = writers_in(tokens);
  LoopTree tree;
  tree.changed = changed_in(tokens, writers);
  Parser parser(writers);
  LoopFinder finder;
  while (!tokens.empty()) take_outermost(tokens, parser, finder, tree);
  tree.looping = finder.all();
  return tree;
}

}  // namespace kiln::dynamic_shaders
