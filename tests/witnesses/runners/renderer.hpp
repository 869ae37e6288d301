// Renderer: a graphics driver that runs the cases, and the command line that both runners share.
//
//   PROGRAM --shaders DIR --out DIR [--spirv DIR] [--device software|hardware] [--queue compute|graphics] [NAME…]
//
// Runs the named cases, or all, and leaves in the out folder: renderer.txt, what the driver calls itself;
// NAME.BUFFER.bin for each compared buffer; and status.txt, a line each, of the name, `ok`, `absent` (the driver lacks
// what the case needs) or `failed`, and a text. The line `NAME begun` is written first, so that a driver that dies is
// known by it. A case that fails is tried once more on a renderer made anew, and the next has a new one too where that
// failed as well. Exit status: 0 where every case has its line; 3 where there is no such renderer, with the reason on
// stderr. Thread-safety: one thread. Ownership: the caller owns the renderer, whose destructor lets go of the driver.
#pragma once

#include "witnesses/catalog/shader_case.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace kiln::witness {

// No such renderer on this machine: not an error of the cases.
class NoRenderer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Renderer {
 public:
  Renderer() = default;
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;
  virtual ~Renderer() = default;

  virtual std::string name() = 0;
  // What the case needs and the driver lacks; empty: nothing.
  virtual std::string missing(const ShaderCase& shader) = 0;
  // Every buffer after the last pass, in their order. Throws std::runtime_error where the driver answers an error.
  virtual std::vector<Bytes> run(const ShaderCase& shader, const std::vector<Bytes>& initial) = 0;
};

struct RunnerOptions {
  std::filesystem::path shaders, out, spirv;
  bool software = false;
  bool graphics_queue = false;
  std::set<std::string> names;  // empty: all
};

using MakeRenderer = std::function<std::unique_ptr<Renderer>(const RunnerOptions&)>;

int run_cases(int argument_count, char** arguments, const MakeRenderer& make);

}  // namespace kiln::witness
