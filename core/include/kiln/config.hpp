// Config: the complete typed configuration, with the origin of each value. kiln/config_reader.hpp reads it.
//
// Precedence: defaults < file < environment < command line. Sizes are in bytes.
// Thread-safety: values. Ownership: values.
//
//   kiln::CacheConfig cache;
//   cache.directory = "/var/cache/app/kiln";
//   cache.key_file = "/var/lib/app/kiln.key";
//   auto programs = kiln::open_program_cache(cache);
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

namespace [[gnu::visibility("default")]] kiln {

struct ConfigPlace {  // position of a value; line 0: not in a file
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

enum class OriginKind : std::uint8_t { invalid = 0, built_in, file, environment, command_line };

struct ConfigOrigin {
  OriginKind kind = OriginKind::built_in;
  std::string detail;      // "configs/default.toml:12:1", "KILN_CACHE_DIR", "--set cache.policy"; empty for built_in
  ConfigPlace place = {};  // position of the value for messages; no file for built_in
};

enum class ConfigType : std::uint8_t { invalid = 0, boolean, integer, number, text, text_list };
using ConfigValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

// A key of the section [plugin.NAME], published by the plugin.
struct ConfigKey {
  std::string name;
  ConfigType type = ConfigType::invalid;
  ConfigValue fallback;
  std::string help;
  std::optional<double> least, most;  // limits of integer and number
  std::vector<std::string> allowed;   // allowed texts; empty: any
};

// A validated section [plugin.NAME] with defaults filled in: key to value.
using PluginSettings = std::map<std::string, ConfigValue>;

// A section [plugin.NAME] as read, before validation.
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

// Return the default cache folder and key file of this user. Cache folder: KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else
// ~/.cache/kiln. Key file: KILN_KEY_FILE, else $XDG_STATE_HOME/kiln/key, else ~/.local/state/kiln/key. Empty if no variable
// has an absolute path. No other thread may change the environment during the call.
std::filesystem::path user_cache_directory();
std::filesystem::path user_key_file();

// One [[cache.remote]]: storage of programs that machines share (kiln/remote_store.hpp).
struct RemoteConfig {
  std::string url;                   // http, https, s3, redis, rediss or file; without a user or a password
  bool writes = false;               // mode = "read_write"
  std::vector<std::string> writers;  // names of trusted keys; a program signed by any other key is not used
  std::string sign_with;             // name of the secret key that signs written programs
  std::string credentials;           // name of a file in credentials.d; empty: none
  std::string layout = "plain";      // "bazel"
  ConfigPlace place;
};

// Returns the parent folders of trust.d, keys.d and credentials.d: /etc/kiln, then $XDG_CONFIG_HOME/kiln or ~/.config/kiln.
// A process with elevated rights, such as set-user-ID, gets only the first.
std::vector<std::filesystem::path> user_trust_folders();

struct CacheConfig {
  std::string name = "tiered";
  std::filesystem::path directory = user_cache_directory();  // absolute; empty: cache in memory only
  std::uint64_t max_programs = 100;
  std::uint64_t max_memory = 50ull << 20;  // bytes
  std::uint64_t max_disk = 1ull << 30;     // bytes
  std::string policy = "cost";             // "lru", "sieve"
  bool auto_save = true;
  std::string compression = "zstd";  // "none"
  bool read_only = false;
  // The process that builds new programs: "child" (a child process, if the device allows it) or "process" (this process).
  std::string build_in = "child";
  std::chrono::nanoseconds build_timeout = std::chrono::seconds(60);  // per build in a child process
  std::uint64_t build_memory = 4ull << 30;                            // limit of the allocations of a child process
  std::filesystem::path key_file = user_key_file();  // key that signs entries; must not be inside `directory`
  // Programs that a runtime preloads in the background: "none", "all", "top", "labels".
  std::string warm = "none";
  std::uint32_t warm_top = 20;           // number of programs for "top"
  std::vector<std::string> warm_labels;  // for "labels"
  std::vector<RemoteConfig> remotes;     // searched in this order, after `directory` and `layers`
  // Read-only folders with signed programs; searched after `directory`.
  std::vector<std::filesystem::path> layers;
  std::vector<std::string> layer_writers;  // names of trusted keys; empty: every trusted key
  // Set by the environment or the application. A configuration file cannot set it, so it cannot add trusted keys.
  std::vector<std::filesystem::path> trust_folders = user_trust_folders();
};

struct ExecutorConfig {
  std::string name = "ring";
  std::uint32_t in_flight = 3;  // 1 to 16
  bool adaptive_depth = false;  // choose the number of used slots from measured stage times
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
};

struct SelectorConfig {
  std::string name = "learning";
  std::string policy = "thompson";
  double ema_alpha = 0.1;
  double exploration = 0.02;
  bool serve_while_building = true;    // run on another device while the best device builds, if the job names no device
  bool log = false;                    // record decisions for `kiln selector replay`
  std::uint64_t max_log = 8ull << 20;  // bytes
};

struct GeneratorConfig {
  std::string name = "dynamic_shaders";
  bool background = false;            // tune used shapes while idle, within selector.exploration
  bool serve_while_building = false;  // run generic programs while the programs of the plan are built
};

struct MetricsConfig {
  std::filesystem::path file;  // empty: not written
  std::chrono::nanoseconds interval = std::chrono::seconds(15);
};

enum class Alpha : std::uint8_t { invalid = 0, keep, drop, premultiply };  // handling of a PNG's alpha channel

std::string_view to_string(Alpha alpha) noexcept;

// One element of a kernel job's `bindings`, or one member of its `images` or `samplers`.
struct KernelBindingConfig {
  std::string label;  // for messages: "bindings[0]", "images.photo"
  BindingKind kind = BindingKind::buffer;
  Access access = Access::invalid;               // read ("input"), write ("output") or read_write ("inout")
  std::string input;                             // source of "input" and "inout": a file, "random:SEED" or "zeros:"
  std::string output;                            // file to write; empty: none. Equal to `input`: overwritten
  Shape shape;                                   // empty: the shape of the file, or of `expect`
  std::array<std::string, 8> shape_expressions;  // not empty: defines that element of `shape`, or of `size`
  std::vector<std::int64_t> size;                // of an image: width, height, depth or layers; empty: the file's size
  DType dtype = DType::invalid;                  // invalid: the dtype of the file, or float32
  std::vector<double> numbers;                   // of "values" and "float", if any has a fraction
  std::vector<std::int64_t> integers;            // of "values" and "int" otherwise
  std::optional<std::uint32_t> number;           // GLSL: binding number; nullopt: by name or position
  std::string name;                              // GLSL: block, image or sampler name; empty: by number or position
  std::string expect;                            // .npy or .png file; empty: not compared
  std::optional<Tolerance> tolerance;            // for `expect`; nullopt: the tolerance of the job
  std::uint64_t local_bytes = 0;                 // of "local"
  std::uint64_t first = 0;                       // of a grid: index of the element for x
  ImageFormat format = ImageFormat::declared;
  TextureFilter filter = TextureFilter::automatic;
  TextureWrap wrap = TextureWrap::clamp;
  ConfigPlace place;
};

// One member of a kernel job's `uniforms`, or of a block of its `blocks`: declaration and values, as in
// UserKernelSpec::Uniform.
struct UniformConfig {
  UserKernelSpec::Uniform uniform;
  std::vector<double> numbers;         // for type number
  std::vector<std::int64_t> integers;  // for types integer and boolean
  ConfigPlace place;
};

// One job of the configuration; each table row is one job. Input paths and the outputs of a kernel's bindings are
// relative to `base`; `output` is relative to the working directory.
struct JobConfig {
  std::string name;
  std::string op;   // "conv2d", "kernel", …
  KernelSpec spec;  // of a layer; the spec of a kernel is made from its source
  // A path, "random:SEED" or a PNG; empty: none. `input` is the operand a of gemm and add.
  std::string input, addend, weights, bias, output;
  bool verify = false;
  std::optional<Tolerance> tolerance;  // nullopt: default of operation and type
  bool keep_failed = false;            // write results even if verification failed
  Alpha alpha = Alpha::keep;           // of PNG inputs
  std::string device;                  // an id; empty: selected automatically
  // For op = "kernel":
  std::string source;
  std::string text;   // text of the source; empty: read the file `source`
  std::string entry;  // OpenCL C kernel name; empty: the only kernel
  std::vector<Define> constants;
  std::vector<std::string> include;           // folders, relative to `base`
  std::vector<KernelBindingConfig> bindings;  // the elements of `bindings`, then of `images`, `samplers` and `grid`
  std::vector<UniformConfig> uniforms;
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // lanes; zeros: declared in the text
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::string, 3> grid_expressions;  // as in UserKernelSpec
  std::vector<UserKernelSpec::Parameter> tune;
  std::string expect;  // .npy file for the only output; empty: each binding may have its own `expect`
  std::filesystem::path base;
  ConfigPlace place;  // position of the job or of its table row
  // Position of each value: "device", "grid[1]", "bindings[0].input". Table rows share the positions of their job.
  std::shared_ptr<const std::map<std::string, ConfigPlace, std::less<>>> places;

  // Returns the position of the key's value. If it is missing, returns the position of the parent key, or of the job.
  ConfigPlace place_of(std::string_view key) const;
};

// One step of a [[pipeline]]: an operation or a loop over steps. The input, output and bindings of an operation name tensors
// of the pipeline.
struct PipelineStepConfig {
  JobConfig job;
  std::uint32_t repeat = 1;
  std::vector<std::pair<std::string, std::string>> swap;  // tensors that exchange their names after each round
  std::vector<PipelineStepConfig> steps;                  // not empty: a loop; only the name is set in `job`
};

// One [[pipeline]]. `job` has the keys that jobs and pipelines share (name, device, verify, …). The bindings of `job` are the
// tensors of the pipeline.
struct PipelineConfig {
  JobConfig job;
  std::vector<PipelineStepConfig> steps;
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
  std::vector<PipelineConfig> pipelines;
  std::map<std::string, RawPluginSection> plugin;    // by plugin name
  std::map<std::string, ConfigOrigin> origins;       // by dotted key, for every key of the fixed sections
  std::map<std::string, ConfigPlace> plugin_places;  // positions of [plugin.NAME] sections, also of empty ones

  // Returns the position that set a dotted key. For a default value, returns line 0 with the key as `file`.
  ConfigPlace place_of(std::string_view key) const;
};

}  // namespace kiln
