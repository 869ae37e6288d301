#include "witnesses/judge.hpp"

#include "witnesses/catalog/contents.hpp"

#include <algorithm>

namespace kiln::witness {
namespace {

const CaseOutcome* outcome_of(const WitnessRun& run, const ShaderCase& shader) {
  const auto found = run.cases.find(shader.name);
  return found == run.cases.end() ? nullptr : &found->second;
}

bool ran(const WitnessRun& run, const ShaderCase& shader) {
  const CaseOutcome* result = outcome_of(run, shader);
  return result != nullptr && result->outcome == Outcome::ok;
}

// What the inputs hold at the place that an output's element comes from, where the outputs are rows of the same count.
std::string inputs_at(const ShaderCase& shader, const BufferSpec& output, std::size_t element) {
  std::string text;
  for (const BufferSpec& input : shader.buffers) {
    if (input.use == Use::out || input.count == 0) continue;
    const std::size_t outputs = output.count * output.lanes, inputs = input.count * input.lanes;
    if (outputs % inputs != 0 || input.count < 32) continue;
    const std::size_t at = element / (outputs / inputs);
    text += "; " + input.name + "[" + std::to_string(at) +
            "] = " + text_at(input.scalar, initial_contents(shader, input), at);
  }
  return text;
}

std::string describe(const ShaderCase& shader, const BufferSpec& buffer, const Difference& found) {
  return shader.name + "." + buffer.name + "[" + std::to_string(found.first) + "] is " + found.text + " (" +
         std::to_string(found.count) + " of " + std::to_string(buffer.count * buffer.lanes) + " differ" +
         inputs_at(shader, buffer, found.first) + ")";
}

Expected expected_of(const ShaderCase& shader, const Rules& rules) {
  Expected expected;
  const auto rule = rules.find(shader.name);
  if (rule != rules.end()) rule->second(Given(shader), expected);
  return expected;
}

}  // namespace

std::vector<std::string> against_rules(const std::vector<ShaderCase>& cases, const Rules& rules, const WitnessRun& run,
                                       Arithmetic arithmetic) {
  std::vector<std::string> found;
  for (const ShaderCase& shader : cases) {
    const CaseOutcome* result = outcome_of(run, shader);
    if (result == nullptr) {
      found.push_back(shader.name + " was not run: " + run.reason);
    } else if (result->outcome == Outcome::failed) {
      found.push_back(shader.name + " failed: " + result->text);
    }
    if (!ran(run, shader)) continue;
    const Expected expected = expected_of(shader, rules);
    for (const BufferSpec& buffer : shader.buffers) {
      const Comparison& how = arithmetic == Arithmetic::software ? buffer.software : buffer.device;
      const std::vector<Bytes> answers = expected.of(buffer.name);
      if (!buffer.compared() || how.none || answers.empty()) continue;
      const Difference difference = compare(buffer.scalar, how, 1.0, run.read(shader.name, buffer.name), answers);
      if (difference.count > 0) found.push_back(describe(shader, buffer, difference));
    }
  }
  return found;
}

std::vector<std::string> against_renderer(const std::vector<ShaderCase>& cases, const Rules& rules,
                                          const WitnessRun& run, const WitnessRun& reference) {
  std::vector<std::string> found;
  for (const ShaderCase& shader : cases) {
    if (!ran(run, shader) || !ran(reference, shader)) continue;
    const Expected expected = expected_of(shader, rules);
    for (const BufferSpec& buffer : shader.buffers) {
      if (!buffer.compared() || buffer.software.none) continue;
      std::vector<Bytes> answers{reference.read(shader.name, buffer.name)};
      const std::vector<Bytes> right = expected.of(buffer.name);
      if (right.size() > 1) answers.insert(answers.end(), right.begin(), right.end());
      const Difference difference =
          compare(buffer.scalar, buffer.software, 2.0, run.read(shader.name, buffer.name), answers);
      if (difference.count > 0) found.push_back(describe(shader, buffer, difference));
    }
  }
  return found;
}

std::size_t count_of(const WitnessRun& run, Outcome outcome) {
  return static_cast<std::size_t>(std::count_if(run.cases.begin(), run.cases.end(),
                                                [&](const auto& each) { return each.second.outcome == outcome; }));
}

}  // namespace kiln::witness
