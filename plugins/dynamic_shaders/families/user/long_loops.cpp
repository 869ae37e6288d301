#include "dynamic_shaders/families/user/long_loops.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "dynamic_shaders/families/user/glsl/declarations.hpp"
#include "dynamic_shaders/families/user/glsl/preprocessor.hpp"
#include "dynamic_shaders/families/user/loop_rounds.hpp"
#include "dynamic_shaders/families/user/loop_tree.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr int most_depth = 200;  // of statements and of calls in one another; the stack is finite
constexpr int most_calls = 2000;

struct OpenLoop {  // one whose rounds are not known
  std::uint32_t line = 0;
  std::string what;
};

// What the driver counts of a piece of text. It counts each loop's last look at its condition as a round too, and a
// round of each loop that no lane enters.
struct Rounds {
  double all = 0;
  double needed = 0;       // up to the last one in which something is done: nobody misses the looks behind it
  double loops = 0;        // as many loops are in it
  std::uint32_t line = 0;  // of the first of them
  std::optional<OpenLoop> open;
};

Rounds operator+(Rounds a, const Rounds& b) {
  if (b.needed > 0) a.needed = a.all + b.needed;
  a.all += b.all;
  a.loops += b.loops;
  if (a.line == 0) a.line = b.line;
  if (!a.open) a.open = b.open;
  return a;
}

Rounds looped(double times, double last_looks, std::uint32_t line, const Rounds& body) {
  Rounds rounds = body;
  rounds.all = times * (1 + body.all) + last_looks * (1 + body.loops);
  rounds.needed = times <= 0 ? 0 : (times - 1) * (1 + body.all) + std::max(1.0, body.needed);
  rounds.loops = 1 + body.loops;
  rounds.line = line;
  return rounds;
}

std::string words_of(Tokens tokens) {
  constexpr std::size_t most = 60;
  std::string words;
  std::string_view before;
  for (const Token& token : tokens) {
    const bool apart = !words.empty() && before != "(" && before != "[" && before != "." && before != "!" &&
                       !is_closing(token.text) && token.text != "(" && token.text != "[" && token.text != "." &&
                       token.text != "," && token.text != "++" && token.text != "--";
    words += (apart ? " " : "") + std::string(token.text);
    before = token.text;
    if (words.size() > most) return words.substr(0, most) + "…";
  }
  return words;
}

// Follows main(), and what it calls with what is known of the arguments.
class Counter {
 public:
  Counter(const LoopTree& tree, const UserKernelSpec& spec)
      : tree_(tree), globals_(globals_of(tree.declarations, tree.changed, spec)) {}

  Rounds of_main() { return call("main", {}, 0); }
  // Loops that are in no other, as of_main() met them.
  const std::vector<Rounds>& nests() const { return nests_; }

 private:
  NamesInSight names() const { return {&locals_, &globals_}; }

  // Of several functions that may be meant, the longest.
  Rounds call(std::string_view name, const std::vector<Tokens>& arguments, std::uint32_t line) {
    Rounds longest;
    std::vector<Range> values;
    for (const Tokens argument : arguments) values.push_back(value_of(argument, names()));
    for (const Function& function : tree_.functions) {
      if (function.name != name || function.parameters.size() != arguments.size()) continue;
      if (++calls_ > most_calls || depth_ > most_depth) {
        longest.open = OpenLoop{line, "calls of calls of " + std::string(name)};
        longest.line = line;
        if (loop_depth_ == 0) nests_.push_back(longest);
        return longest;
      }
      const Rounds rounds = body_of(function, values);
      if (rounds.all >= longest.all) longest = rounds;
    }
    return longest;
  }

  Rounds body_of(const Function& function, const std::vector<Range>& arguments) {
    Values inner;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const FunctionParameter& parameter = function.parameters[i];
      const bool known = !parameter.is_written && !tree_.changed.contains(parameter.name);
      inner.add(parameter.name, held_by(parameter.type, known ? arguments[i] : Range{}));
    }
    std::swap(inner, locals_);
    ++depth_;
    const Rounds rounds = all(function.body);
    --depth_;
    std::swap(inner, locals_);
    return rounds;
  }

  // Of the calls in an expression or a simple statement. One that no loop can be met in is not followed: it adds
  // nothing, and kernels may call their helpers very often.
  Rounds calls_in(Tokens words) {
    Rounds rounds;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i + 1].text != "(" || !tree_.looping.contains(words[i].text)) continue;
      const Tokens inside = in_brackets(words, i + 1);
      const std::vector<Tokens> arguments = inside.empty() ? std::vector<Tokens>() : split(inside, ",");
      rounds = rounds + call(words[i].text, arguments, words[i].line);
    }
    return rounds;
  }

  Rounds all(std::span<const Statement> statements) {
    Rounds rounds;
    for (const Statement& statement : statements) rounds = rounds + one(statement);
    return rounds;
  }

  Rounds one(const Statement& statement) {
    if (depth_ > most_depth) return {};
    if (statement.kind == Statement::Kind::simple) {
      const Rounds rounds = calls_in(statement.words);
      declare(statement.words, names(), tree_.changed, locals_);
      return rounds;
    }
    ++depth_;
    const std::size_t outer = locals_.size();
    const Rounds rounds = statement.kind == Statement::Kind::block ? all(statement.inside) : nested(statement);
    locals_.shrink_to(outer);
    --depth_;
    return rounds;
  }

  Rounds nested(const Statement& loop) {
    ++loop_depth_;
    const Rounds rounds = loop.kind == Statement::Kind::for_loop ? for_loop(loop) : while_loop(loop);
    --loop_depth_;
    if (loop_depth_ == 0) nests_.push_back(rounds);
    return rounds;
  }

  Rounds for_loop(const Statement& loop) {
    const std::vector<Tokens> head = split(loop.words, ";");
    const Rounds in_head = calls_in(loop.words);
    declare(head[0], names(), tree_.changed, locals_);  // its bound may be among them
    std::optional<Course> course = course_of(head[0], head[1], head[2], names());
    if (course) locals_.add(course->variable, course->inside);
    const Rounds body = in_head + all(loop.inside);
    if (course && (loop.changed.contains(course->variable) || loop.changed.contains(course->base))) course.reset();
    Rounds rounds = looped(course ? course->times : 1, 1, loop.line, body);
    if (!course) rounds.open = OpenLoop{loop.line, words_of(head[1])};
    return rounds;
  }

  // How often a condition of this form holds is known only where it never does.
  Rounds while_loop(const Statement& loop) {
    const bool is_do = loop.kind == Statement::Kind::do_loop;
    const Rounds in_head = is_do ? Rounds() : calls_in(loop.words);
    Rounds body = in_head + all(loop.inside);
    if (is_do) body = body + calls_in(loop.words);
    const bool never = value_of(loop.words, names()).is_false();
    const double at_least = is_do ? 1 : 0;
    Rounds rounds = looped(never ? at_least : 1, 1 - at_least, loop.line, body);
    if (!never) rounds.open = OpenLoop{loop.line, words_of(loop.words)};
    return rounds;
  }

  const LoopTree& tree_;
  Values globals_;
  Values locals_;
  std::vector<Rounds> nests_;
  int depth_ = 0;
  int loop_depth_ = 0;
  int calls_ = 0;
};

std::string with_thousands(double number) {
  std::string digits = std::to_string(static_cast<std::uint64_t>(std::min(number, 1e18)));
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string limit() {
  return "; a driver in software such as llvmpipe ends all loops of a lane after " + with_thousands(most_rounds) +
         " rounds, without an error";
}

std::string sentence_of(const Rounds& nest) {
  return "line " + std::to_string(nest.line) + ": this loop could go round " + with_thousands(nest.needed) +
         " times in a lane" + (nest.loops > 1 ? ", with those in it and each one's last look at its condition" : "") +
         limit();
}

std::string sentence_of(const OpenLoop& open) {
  return "line " + std::to_string(open.line) + ": how often this loop goes round is not known before it runs" +
         (open.what.empty() ? "" : " (" + open.what + ")") + limit();
}

std::string sentence_of_all(std::span<const Rounds> nests, double together) {
  const auto [first, last] = std::ranges::minmax(nests, {}, &Rounds::line);
  return "lines " + std::to_string(first.line) + " to " + std::to_string(last.line) +
         ": the loops of a lane could go round " + with_thousands(together) +
         " times together, with each one's last look at its condition" + limit();
}

std::vector<std::string> sentences_of(std::span<const Rounds> nests, const Rounds& total) {
  std::vector<std::string> sentences;
  // A function that is called twice has its nests twice.
  const auto tell = [&sentences](std::string sentence) {
    if (std::ranges::find(sentences, sentence) == sentences.end()) sentences.push_back(std::move(sentence));
  };
  for (const Rounds& nest : nests) {
    if (nest.needed > most_rounds) tell(sentence_of(nest));
  }
  if (sentences.empty() && total.needed > most_rounds) tell(sentence_of_all(nests, total.needed));
  for (const Rounds& nest : nests) {
    if (nest.open && nest.needed <= most_rounds) tell(sentence_of(*nest.open));
  }
  return sentences;
}

// Most kernels are done with here: plans are made anew for each job of a user's kernel.
bool mentions_a_loop(std::string_view text) {
  return text.find("for") != std::string_view::npos || text.find("while") != std::string_view::npos;
}

}  // namespace

std::vector<std::string> long_loops(const UserKernelSpec& kernel) {
  const bool any = mentions_a_loop(kernel.text) ||
                   std::ranges::any_of(kernel.constants, [](const Define& each) { return mentions_a_loop(each.text); });
  if (!any) return {};
  const std::vector<Token> tokens = preprocessed(kernel.text, kernel.constants);
  const LoopTree tree = loop_tree(tokens);
  Counter counter(tree, kernel);
  const Rounds total = counter.of_main();
  return sentences_of(counter.nests(), total);
}

}  // namespace kiln::dynamic_shaders
