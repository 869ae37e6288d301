// One runner, as child processes under a driver that the environment chooses, and what it left behind.
// Thread-safety: any thread, with an out folder of its own. Ownership: values; the children have ended on return.
#pragma once

#include "witnesses/catalog/shader_case.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

namespace kiln::witness {

struct WitnessSetup {
  std::string name;  // of its out folder: "radv gfx1100"
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added; an empty value unsets
  std::filesystem::path out;                       // emptied first
  std::chrono::seconds limit{600};                 // for all children together
};

enum class Outcome : std::uint8_t { invalid = 0, ok, absent, failed };

struct CaseOutcome {
  Outcome outcome = Outcome::invalid;
  std::string text;
};

struct WitnessRun {
  std::string renderer;  // what the driver calls itself; empty: there is none
  std::string reason;    // then, why
  std::map<std::string, CaseOutcome> cases;
  std::filesystem::path out;

  // The buffer as the driver left it. Throws std::runtime_error where the file is missing.
  Bytes read(const std::string& shader, const std::string& buffer) const;
};

// Where a child dies, or passes the limit, the case that was begun counts as failed with the end of what the child
// said, and another child goes on with the cases after it.
WitnessRun run_witness(const WitnessSetup& setup, const std::vector<ShaderCase>& cases);

}  // namespace kiln::witness
