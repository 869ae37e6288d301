#include "witnesses/runners/renderer.hpp"

#include "witnesses/catalog/contents.hpp"

#include <fstream>
#include <iostream>

namespace kiln::witness {
namespace {

RunnerOptions parse(int argument_count, char** arguments) {
  RunnerOptions options;
  for (int k = 1; k < argument_count; ++k) {
    const std::string word = arguments[k];
    if (word.rfind("--", 0) != 0) {
      options.names.insert(word);
      continue;
    }
    if (++k == argument_count) throw std::runtime_error(word + " needs a value");
    const std::string value = arguments[k];
    if (word == "--shaders") {
      options.shaders = value;
    } else if (word == "--out") {
      options.out = value;
    } else if (word == "--spirv") {
      options.spirv = value;
    } else if (word == "--device" && (value == "software" || value == "hardware")) {
      options.software = value == "software";
    } else if (word == "--queue" && (value == "compute" || value == "graphics")) {
      options.graphics_queue = value == "graphics";
    } else {
      throw std::runtime_error("unknown option " + word + " " + value);
    }
  }
  if (options.shaders.empty() || options.out.empty()) throw std::runtime_error("--shaders and --out are needed");
  return options;
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return text;
}

std::string run_one(Renderer& renderer, const ShaderCase& shader, const std::filesystem::path& out) {
  const std::string missing = renderer.missing(shader);
  if (!missing.empty()) return "absent\t" + missing;
  std::vector<Bytes> initial;
  for (const BufferSpec& buffer : shader.buffers) initial.push_back(initial_contents(shader, buffer));
  try {
    const std::vector<Bytes> results = renderer.run(shader, initial);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (shader.buffers[k].compared())
        write_file(out / (shader.name + "." + shader.buffers[k].name + ".bin"), results[k]);
    }
    return "ok\t";
  } catch (const std::exception& error) {
    return "failed\t" + one_line(error.what());
  }
}

}  // namespace

int run_cases(int argument_count, char** arguments, const MakeRenderer& make) {
  try {
    const RunnerOptions options = parse(argument_count, arguments);
    const std::vector<ShaderCase> cases = load_cases(options.shaders);
    std::filesystem::create_directories(options.out);
    std::unique_ptr<Renderer> renderer = make(options);
    std::ofstream(options.out / "renderer.txt") << renderer->name() << "\n";
    std::ofstream status(options.out / "status.txt", std::ios::app);
    for (const ShaderCase& shader : cases) {
      if (!options.names.empty() && !options.names.contains(shader.name)) continue;
      status << shader.name << "\tbegun\t" << std::endl;
      std::string result = run_one(*renderer, shader, options.out);
      if (result.rfind("failed", 0) == 0) {  // perhaps of the case before, which may have cost the device
        renderer.reset();
        renderer = make(options);
        result = run_one(*renderer, shader, options.out);
      }
      status << shader.name << "\t" << result << std::endl;
    }
    if (!status) throw std::runtime_error("status.txt cannot be written");
    return 0;
  } catch (const NoRenderer& error) {
    std::cerr << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

}  // namespace kiln::witness
