// Runs the tree of a random program on the host.
#include <algorithm>
#include <bit>

#include "tests/simulator/random/tree.hpp"

namespace kiln::simulator::test::drawn {

namespace {

class Interpreter {
 public:
  Interpreter(const Program& program, const std::vector<std::uint32_t>& given, unsigned lanes)
      : program_(program), given_(given), lanes_(lanes) {
    results.words.assign(std::size_t{program.threads} * program.groups * program.word_slots, 0);
    results.sums.assign(RandomProgram::sum_words, 0);
    results.wide.assign(RandomProgram::wide_sums, 0);
  }

  void run() {
    for (group_ = 0; group_ < program_.groups; ++group_) {
      shared_.assign(program_.shared_slots, 0);
      slots_.assign(program_.threads, std::vector<U64>(program_.own_slots));
      for (thread_ = 0; thread_ < program_.threads; ++thread_) {
        own()[program_.local_slot] = thread_;
        own()[program_.local_slot + 1] = id();
        own()[program_.local_slot + 2] = group_;
      }
      run_group(program_.main);
      for (thread_ = 0; thread_ < program_.threads; ++thread_) put_results();
    }
  }

  RandomProgram::Results results;

 private:
  enum class Flow : std::uint8_t { invalid = 0, on, leave, next, finish };

  unsigned id() const { return group_ * program_.threads + thread_; }
  std::vector<U64>& own() { return slots_[thread_]; }

  void put_results() {
    std::uint32_t* words = results.words.data() + std::size_t{id()} * program_.word_slots;
    for (std::size_t i = 0; i < program_.results.size(); ++i) {
      const U64 value = own()[program_.results[i].slot];
      words[first_result + i] = static_cast<std::uint32_t>(program_.results[i].high ? value >> 32U : value);
    }
  }

  // Threads run one after the other, except at what they do together.
  void run_group(const std::vector<Statement>& list) {
    for (const Statement& s : list) {
      if (s.kind == Statement::Kind::barrier) continue;
      if (s.kind == Statement::Kind::lanes) {
        run_lanes(s);
      } else if (s.kind == Statement::Kind::loop && has_meeting(s.body)) {
        const U64 rounds = s.value->value;
        for (U64 k = 0; k < rounds; ++k) {
          for (thread_ = 0; thread_ < program_.threads; ++thread_) own()[s.slot] = k;
          run_group(s.body);
        }
      } else {
        for (thread_ = 0; thread_ < program_.threads; ++thread_) static_cast<void>(step(s));
      }
    }
  }

  static bool has_meeting(const std::vector<Statement>& list) {
    return std::any_of(list.begin(), list.end(), [](const Statement& s) {
      return s.kind == Statement::Kind::barrier || s.kind == Statement::Kind::lanes;
    });
  }

  void run_lanes(const Statement& s) {
    constexpr U64 off = U64{1} << 63U;  // above every value of 32 bits
    for (unsigned first = 0; first < program_.threads; first += lanes_) {
      const unsigned count = std::min(lanes_, program_.threads - first);
      std::vector<U64> values(lanes_, off);
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (!s.condition || value(*s.condition) != 0) values[lane] = value(*s.value);
      }
      std::vector<U64> done(lanes_, off);
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (values[lane] == off) continue;
        if (s.lanes) {
          done[lane] = s.lanes(values, lane);
        } else {
          const U64 below = value(*s.arguments[0]) & ((U64{1} << lane) - 1);
          done[lane] = values[lane] + static_cast<U64>(std::popcount(below));
        }
      }
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (values[lane] == off || (s.old.space != Space::invalid && done[lane] == ~U64{0})) continue;
        at(s.to) = wrapped(s.to.type, done[lane]);
      }
    }
  }

  std::size_t slot_of(const Place& place) {
    std::size_t slot = place.base;
    for (const Index& index : place.indices) slot += value(*index.at) % index.count * index.stride;
    if (place.a_thread != 0) slot += std::size_t{place.space == Space::words ? id() : thread_} * place.a_thread;
    return slot;
  }
  U64& at(const Place& place) {
    const std::size_t slot = slot_of(place);
    return place.space == Space::own ? own()[slot] : shared_[slot];
  }
  U64 load(const Place& place) {
    const std::size_t slot = slot_of(place);
    switch (place.space) {
      case Space::given:
        return given_[slot];
      case Space::table:
        return program_.table[slot];
      case Space::words:
        return results.words[slot];
      case Space::shared:
        return shared_[slot];
      default:
        return own()[slot];
    }
  }
  void store(const Place& place, U64 value) {
    if (place.space == Space::words) {
      results.words[slot_of(place)] = static_cast<std::uint32_t>(value);
    } else {
      at(place) = value;
    }
  }

  U64 value(const Expression& e) {
    switch (e.kind) {
      case Expression::Kind::constant:
        return e.value;
      case Expression::Kind::read:
        return load(e.place);
      case Expression::Kind::operation: {
        U64 values[4];
        for (std::size_t i = 0; i < e.operands.size(); ++i) values[i] = value(*e.operands[i]);
        return e.compute(values);
      }
      default: {
        std::vector<U64> values;
        for (const E& each : e.operands) values.push_back(value(*each));
        return call(*e.function, values);
      }
    }
  }

  U64 call(const Function& function, const std::vector<U64>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) own()[function.parameters[i].second] = arguments[i];
    run(function.body);
    return result_;
  }

  Flow run(const std::vector<Statement>& list, std::size_t from = 0) {
    for (std::size_t i = from; i < list.size(); ++i) {
      const Flow flow = step(list[i]);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow step(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::assign: {
        const U64 result = value(*s.value);
        store(s.to, result);
        return Flow::on;
      }
      case Statement::Kind::update: {
        const U64 operand = value(*s.value);
        const std::size_t slot = slot_of(s.to);
        if (s.to.space == Space::invalid) {
          if (s.to.type == Type::u64) {
            results.wide[slot] = s.combine(results.wide[slot], operand);
          } else {
            results.sums[slot] = static_cast<std::uint32_t>(s.combine(results.sums[slot], operand));
          }
          return Flow::on;
        }
        const U64 before = shared_[slot];
        shared_[slot] = s.combine(before, operand);
        if (s.old.space != Space::invalid) store(s.old, before);
        return Flow::on;
      }
      case Statement::Kind::branch:
        return run(value(*s.condition) != 0 ? s.body : s.otherwise);
      case Statement::Kind::loop: {
        const U64 rounds = value(*s.value);
        for (U64 k = 0; k < rounds || (k == 0 && s.first_round_always); ++k) {
          own()[s.slot] = k;
          const Flow flow = run(s.body);
          if (flow == Flow::leave) break;
          if (flow == Flow::finish) return flow;
        }
        return Flow::on;
      }
      case Statement::Kind::choose: {
        const U64 label = value(*s.value);
        std::size_t from = s.labels.back().second;  // the default
        for (const auto& [each, place] : s.labels) {
          if (each == label) from = place;
        }
        const Flow flow = run(s.body, from);
        return flow == Flow::leave ? Flow::on : flow;
      }
      case Statement::Kind::leave_loop:
        return Flow::leave;
      case Statement::Kind::next_round:
        return Flow::next;
      case Statement::Kind::finish:
        result_ = value(*s.value);
        return Flow::finish;
      case Statement::Kind::call: {
        std::vector<U64> values = {load(s.old)};
        for (const E& each : s.arguments) values.push_back(value(*each));
        const U64 result = call(*s.function, values);
        store(s.old, own()[s.function->parameters[0].second]);
        store(s.to, result);
        return Flow::on;
      }
      case Statement::Kind::vector: {
        std::array<U64, 4> lanes{};
        for (unsigned i = 0; i < s.slot; ++i) {
          lanes[i] = s.arguments.empty() ? s.combine(own()[s.left[i]], own()[s.right[i]]) : value(*s.arguments[i]);
        }
        for (unsigned i = 0; i < s.slot; ++i) own()[s.to.base + i] = lanes[i];
        return Flow::on;
      }
      default:
        return Flow::on;
    }
  }

  const Program& program_;
  const std::vector<std::uint32_t>& given_;
  const unsigned lanes_;
  unsigned group_ = 0, thread_ = 0;
  std::vector<std::vector<U64>> slots_;
  std::vector<U64> shared_;
  U64 result_ = 0;
};

}  // namespace

RandomProgram::Results interpreted(const Program& program, const std::vector<std::uint32_t>& given, unsigned lanes) {
  Interpreter interpreter(program, given, lanes);
  interpreter.run();
  return std::move(interpreter.results);
}

}  // namespace kiln::simulator::test::drawn
