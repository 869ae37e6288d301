// Config: everything a user may choose, typed, with the origin of each value; ConfigKey: how a key is described.
//
// Thread-safety: values. Ownership: values. kiln/config_reader.hpp reads it; this header only gives the shapes.
// Order of precedence: defaults < file < environment < command line.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/log.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln {

struct ConfigPlace {  // where a value stands; line 0: not in a file
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

enum class OriginKind : std::uint8_t { invalid = 0, built_in, file, environment, command_line };

struct ConfigOrigin {
  OriginKind kind = OriginKind::built_in;
  std::string detail;      // "configs/default.toml:12:1", "KILN_CACHE_DIR", "--set cache.policy"; empty for built_in
  ConfigPlace place = {};  // of the value, as problems name it; no file for built_in
};

enum class ConfigType : std::uint8_t { invalid = 0, boolean, integer, number, text, text_list };
using ConfigValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

// One key that a plugin publishes for its [plugin.NAME] section.
struct ConfigKey {
  std::string name;
  ConfigType type = ConfigType::invalid;
  ConfigValue fallback;
  std::string help;
  std::optional<double> least, most;  // for integer and number
  std::vector<std::string> allowed;   // for text; empty: anything
};

// A checked [plugin.NAME] section with defaults filled in: key → value.
using PluginSettings = std::map<std::string, ConfigValue>;

// A [plugin.NAME] section as it was read, before the plugin's keys are known.
struct RawSetting {
  ConfigValue value;
  ConfigOrigin origin;
  ConfigPlace place;
};
using RawPluginSection = std::map<std::string, RawSetting>;

struct PluginsConfig {
  std::vector<std::string> load{"cpu", "opengl", "dynamic_shaders", "amdgpu_pm4"};
  std::vector<std::string> required{"cpu"};
  std::vector<std::filesystem::path> path;  // searched first to last; set by --plugin-path or KILN_PLUGIN_PATH
};

enum class Fallback : std::uint8_t { invalid = 0, report, never };

struct DeviceConfig {
  std::string prefer = "auto";
  Fallback fallback = Fallback::report;
};

// Where this user's cache and its key lie, by the environment of this process, as for the `kiln` command:
// KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln; KILN_KEY_FILE, else $XDG_STATE_HOME/kiln/key, else
// ~/.local/state/kiln/key. Empty where none of these variables holds an absolute path. They read the environment: no
// other thread may change it meanwhile.
std::filesystem::path user_cache_directory();
std::filesystem::path user_key_file();

struct CacheConfig {
  std::string name = "tiered";
  std::filesystem::path directory = user_cache_directory();  // absolute; empty: programs are kept in memory only
  std::uint64_t max_programs = 100;
  std::uint64_t max_memory = 50ull << 20;  // bytes
  std::uint64_t max_disk = 1ull << 30;     // bytes
  std::string policy = "cost";  // "lru", "sieve"
  bool auto_save = true;
  std::string compression = "zstd";  // "none"
  bool read_only = false;
  // Where new programs are built: "child", a process of its own for devices that allow it, or "process", this one.
  std::string build_in = "child";
  std::chrono::nanoseconds build_timeout = std::chrono::seconds(60);  // of one build in a child
  std::uint64_t build_memory = 4ull << 30;                            // bytes that a child may allocate
  std::filesystem::path key_file = user_key_file();  // authenticates stored bytes; never inside `directory`
  // What a runtime links and dispatches ahead of its jobs, in the background: "all", "top", "labels".
  std::string warm = "none";
  std::uint32_t warm_top = 20;           // programs, of "top"
  std::vector<std::string> warm_labels;  // of "labels"
};

struct ExecutorConfig {
  std::string name = "ring";
  std::uint32_t in_flight = 3;  // 1 to 16
  bool adaptive_depth = false;  // of in_flight slots as many are used as the stages' measured times call for
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
};

struct SelectorConfig {
  std::string name = "learning";
  std::string policy = "thompson";
  double ema_alpha = 0.1;
  double exploration = 0.02;
  bool serve_while_building =
      true;          // a job that names no device is served elsewhere while its best device still builds
  bool log = false;  // decisions are recorded, for `kiln selector replay`
  std::uint64_t max_log = 8ull << 20;  // bytes
};

struct GeneratorConfig {
  std::string name = "dynamic_shaders";
  bool background = false;  // shapes that ran are tuned while the runtime has no jobs, within selector.exploration
  bool serve_while_building = false;  // a first call is served by kept programs for any shape while its own are built
};

struct MetricsConfig {
  std::filesystem::path file;  // empty: none is written
  std::chrono::nanoseconds interval = std::chrono::seconds(15);
};

enum class Alpha : std::uint8_t { invalid = 0, keep, drop, premultiply };  // what becomes of a PNG's alpha channel

std::string_view to_string(Alpha alpha) noexcept;

// One element of a kernel job's `bindings`.
struct KernelBindingConfig {
  BindingKind kind = BindingKind::buffer;
  Access access = Access::invalid;  // buffer: read ("input"), write ("output") or read_write ("inout")
  std::string input;                // the .npy file that is read ("input", "inout"); empty for "output"
  std::string output;               // the file that is written; empty: none. Equal to `input`: written back in place
  Shape shape;                      // of an "output", and of a value (one element)
  DType dtype = DType::invalid;     // likewise: "float" is f32, "int" is i32
  std::optional<std::uint32_t> number;  // GLSL: the binding number; absent: by name or position
  std::string name;                     // GLSL: the name of the block; empty: by number or position
  std::string expect;                   // .npy; empty: this output is not compared
  std::optional<Tolerance> tolerance;   // of `expect`; absent: that of the job
  double value = 0;                     // of "float"
  std::int64_t integer = 0;             // of "int"
  std::uint64_t local_bytes = 0;        // of "local"
  ConfigPlace place;
};

// One member of a kernel job's `uniforms`: its declaration and its values, as UserKernelSpec::Uniform has them.
struct UniformConfig {
  UserKernelSpec::Uniform uniform;
  std::vector<double> numbers;         // of type number
  std::vector<std::int64_t> integers;  // of types integer and boolean
  ConfigPlace place;
};

// One job of a file, as written: tables already expanded to a job a row. Names of files that are read, and
// the outputs of a kernel's bindings, are relative to `base`; a job's `output` is relative to the working directory.
struct JobConfig {
  std::string name;
  std::string op;                            // "conv2d", "gemm", "kernel"
  std::variant<Conv2dSpec, GemmSpec> spec;   // for conv2d and gemm
  std::string input, weights, bias, output;  // path, "random:SEED" or a PNG; empty: none
  bool verify = false;
  std::optional<Tolerance> tolerance;  // absent: the default of the operation and type
  bool keep_failed = false;            // results are written although verification failed
  Alpha alpha = Alpha::keep;           // of PNG inputs
  std::string device;                  // an id; empty: the selector's choice
  // op = "kernel":
  std::string source;
  std::string entry;  // of OpenCL C; empty: its only kernel
  std::vector<Define> constants;
  std::vector<std::string> include;  // folders, relative to `base`
  std::vector<KernelBindingConfig> bindings;
  std::vector<UniformConfig> uniforms;
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // OpenCL C without the attribute; zeros: the text declares it
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::string, 3> grid_expressions;  // as UserKernelSpec has them
  std::vector<UserKernelSpec::Parameter> tune;
  std::string expect;  // .npy, of the only output; empty: the bindings say it, or verified is null
  std::filesystem::path base;
  ConfigPlace place;  // of the job, or of its row in a table
  // Where each value of the job stands: "device", "grid[1]", "bindings[0].input". Rows of a table share those of their
  // job.
  std::shared_ptr<const std::map<std::string, ConfigPlace, std::less<>>> places;

  // Where the value of a key stands, else what it is part of, else the job.
  ConfigPlace place_of(std::string_view key) const;
};

struct Config {
  PluginsConfig plugins;
  DeviceConfig device;
  CacheConfig cache;
  ExecutorConfig executor;
  SelectorConfig selector;
  GeneratorConfig generator;
  MetricsConfig metrics;
  LogLevel log_level = LogLevel::warning;
  std::vector<JobConfig> jobs;
  std::map<std::string, RawPluginSection> plugin;    // by plugin name
  std::map<std::string, ConfigOrigin> origins;       // dotted key → origin, every key of every fixed section
  std::map<std::string, ConfigPlace> plugin_places;  // of the [plugin.NAME] sections, empty ones too

  // Where the value of a dotted key was set; a place without a line, named by the key, where nobody set it.
  ConfigPlace place_of(std::string_view key) const;
};

}  // namespace kiln
