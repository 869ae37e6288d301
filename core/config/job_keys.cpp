#include "config/job_keys.hpp"

#include <kiln/config_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <vector>

namespace kiln::config {
namespace {

constexpr JobForms bit(JobForm form) { return static_cast<JobForms>(form); }
constexpr JobForms conv2d = bit(JobForm::conv2d), gemm = bit(JobForm::gemm), kernel = bit(JobForm::kernel),
                   table = bit(JobForm::table), pool2d = bit(JobForm::pool2d), add = bit(JobForm::add),
                   softmax = bit(JobForm::softmax), activation = bit(JobForm::activation);
constexpr JobForms weighted = conv2d | gemm | table;
constexpr JobForms shaped = add | softmax | activation;
constexpr JobForms numeric = weighted | pool2d | shaped;
constexpr JobForms every = numeric | kernel;

constexpr JobOperation operations_of_jobs[] = {
    {"conv2d", JobForm::conv2d, [](const JobDraft& draft) -> KernelSpec { return draft.conv; }},
    {"gemm", JobForm::gemm, [](const JobDraft& draft) -> KernelSpec { return draft.gemm; }},
    {"pool2d", JobForm::pool2d,
     [](const JobDraft& draft) -> KernelSpec {
       Pool2dSpec pool = draft.pool;  // without a window: the whole plane
       if (pool.r == 0) pool.r = pool.h;
       if (pool.s == 0) pool.s = pool.w;
       return pool;
     }},
    {"add", JobForm::add,
     [](const JobDraft& draft) -> KernelSpec { return AddSpec{.shape = draft.shape, .activation = draft.activation}; }},
    {"softmax", JobForm::softmax,
     [](const JobDraft& draft) -> KernelSpec { return SoftmaxSpec{.shape = draft.shape}; }},
    {"activation", JobForm::activation,
     [](const JobDraft& draft) -> KernelSpec {
       return ActivationSpec{.shape = draft.shape, .activation = draft.activation};
     }},
    {"kernel", JobForm::kernel, nullptr},
};

constexpr double most_extent = 1 << 20;
constexpr ValueRule extent{ValueKind::integer, 1, most_extent};
constexpr ValueRule padding{ValueKind::integer, 0, most_extent};
constexpr ValueRule own{};  // the entry's read() judges

constexpr auto ops = [] {
  std::array<std::string_view, std::size(operations_of_jobs)> names;
  std::ranges::transform(operations_of_jobs, names.begin(), &JobOperation::name);
  return names;
}();
constexpr std::string_view activations[] = {"none", "relu", "relu6"};
constexpr std::string_view pools[] = {"max", "average"};
constexpr std::string_view accuracies[] = {"direct", "winograd"};
constexpr std::string_view alphas[] = {"keep", "drop", "premultiply"};

template <std::string JobConfig::*member>
Status set_text(JobDraft& draft, const ConfigValue& value) {
  draft.job.*member = std::get<std::string>(value);
  return {};
}

// A path, or "random:" or "he:" and a seed.
template <std::string JobConfig::*member>
Status set_tensor(JobDraft& draft, const ConfigValue& value) {
  const std::string& from = std::get<std::string>(value);
  for (const std::string_view scheme : {"random:", "he:"}) {
    if (!from.starts_with(scheme)) continue;
    const std::string_view digits = std::string_view(from).substr(scheme.size());
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return invalid_argument("found " + toml_text(from) + ", expected \"" + std::string(scheme) +
                              "SEED\" with a seed from 0 to 2^64 - 1");
    }
  }
  draft.job.*member = from;
  return {};
}

Status set_bias(JobDraft& draft, const ConfigValue& value) {
  draft.conv.bias = draft.gemm.bias = Bias::per_channel;
  return set_tensor<&JobConfig::bias>(draft, value);
}

template <std::int64_t Conv2dSpec::*member>
Status set_conv(JobDraft& draft, const ConfigValue& value) {
  draft.conv.*member = std::get<std::int64_t>(value);
  return {};
}
template <std::int64_t Conv2dSpec::*in_conv, std::int64_t Pool2dSpec::*in_pool>
Status set_plane(JobDraft& draft, const ConfigValue& value) {
  draft.conv.*in_conv = draft.pool.*in_pool = std::get<std::int64_t>(value);
  return {};
}
template <std::int64_t GemmSpec::*member>
Status set_gemm(JobDraft& draft, const ConfigValue& value) {
  draft.gemm.*member = std::get<std::int64_t>(value);
  return {};
}
Status set_n(JobDraft& draft, const ConfigValue& value) {
  draft.conv.n = draft.gemm.n = draft.pool.n = std::get<std::int64_t>(value);
  return {};
}
Status set_k(JobDraft& draft, const ConfigValue& value) {
  draft.conv.k = draft.gemm.k = std::get<std::int64_t>(value);
  return {};
}

Status set_activation(JobDraft& draft, const ConfigValue& value) {
  for (const Activation each : {Activation::none, Activation::relu, Activation::relu6}) {
    if (std::get<std::string>(value) != to_string(each)) continue;
    draft.conv.activation = draft.gemm.activation = draft.activation = each;
  }
  return {};
}
Status set_pool(JobDraft& draft, const ConfigValue& value) {
  draft.pool.kind = std::get<std::string>(value) == "max" ? PoolKind::maximum : PoolKind::average;
  return {};
}
Status set_accuracy(JobDraft& draft, const ConfigValue& value) {
  draft.conv.accuracy = std::get<std::string>(value) == "winograd" ? Accuracy::winograd : Accuracy::direct;
  return {};
}
Status set_verify(JobDraft& draft, const ConfigValue& value) {
  draft.job.verify = std::get<bool>(value);
  return {};
}

Status set_keep_failed(JobDraft& draft, const ConfigValue& value) {
  draft.job.keep_failed = std::get<bool>(value);
  return {};
}
Status set_alpha(JobDraft& draft, const ConfigValue& value) {
  for (const Alpha alpha : {Alpha::keep, Alpha::drop, Alpha::premultiply}) {
    if (std::get<std::string>(value) == to_string(alpha)) draft.job.alpha = alpha;
  }
  return {};
}

void read_table_name(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report) {
  const Result<ConfigValue> value = checked(member.value, text_value);
  if (!value) return report.problem(member.value.at, std::string(key.name) + ": " + value.error().message);
  draft.table = std::get<std::string>(*value);
  draft.table_at = member.value.at;
}

// A number for both axes, or [y, x].
struct PairTarget {
  std::int64_t Conv2dSpec::*in_conv;
  std::int64_t Pool2dSpec::*in_pool;  // null: pool2d has no such key
};
template <PairTarget y, PairTarget x, bool from_zero>
void read_pair(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report) {
  const ValueRule& rule = from_zero ? padding : extent;
  const TomlNode& node = member.value;
  const bool pair = node.kind == TomlKind::array && node.items.size() == 2;
  if (!pair && node.kind != TomlKind::integer) {
    const std::string found =
        node.kind == TomlKind::array ? "an array of length " + std::to_string(node.items.size()) : describe(node);
    return report.problem(node.at, std::string(key.name) + ": found " + found + ", expected " + expected_text(rule) +
                                       ", or an array [y, x] of two such integers");
  }
  const TomlNode& first = pair ? node.items[0] : node;
  const TomlNode& second = pair ? node.items[1] : node;
  for (const auto& [item, target] : {std::pair(&first, y), std::pair(&second, x)}) {
    const Result<ConfigValue> value = checked(*item, rule);
    if (value) {
      draft.conv.*target.in_conv = std::get<std::int64_t>(*value);
      if (target.in_pool != nullptr) draft.pool.*target.in_pool = std::get<std::int64_t>(*value);
    } else {
      report.problem(item->at, std::string(key.name) + ": " + value.error().message);
      if (!pair) return;
    }
  }
}

// One to four extents.
void read_shape(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report) {
  const TomlNode& node = member.value;
  Extents extents{};
  if (node.kind != TomlKind::array || node.items.empty() || node.items.size() > extents.size()) {
    const std::string found =
        node.kind == TomlKind::array ? "an array of length " + std::to_string(node.items.size()) : describe(node);
    return report.problem(node.at,
                          std::string(key.name) + ": found " + found + ", expected an array of one to four extents");
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Result<ConfigValue> value = checked(node.items[i], extent);
    if (!value) return report.problem(node.items[i].at, std::string(key.name) + ": " + value.error().message);
    extents[i] = std::get<std::int64_t>(*value);
  }
  draft.shape = extents;
}

using C = Conv2dSpec;
using G = GemmSpec;
using P = Pool2dSpec;

constexpr JobKeyEntry entries[] = {
    {"name", every, every & ~table, text_value, "", "A label, once in a file. A table's jobs are called \"name/row\".",
     set_text<&JobConfig::name>, nullptr},
    {"op", every, every & ~table, word_of(ops), "", "The operation.", set_text<&JobConfig::op>, nullptr},
    {"table", table, table, own, "",
     "A .csv file, relative to this one, with the columns name, n, c, h, w, k, r, s, stride, pad, groups. Each row is "
     "a conv2d job.",
     nullptr, read_table_name},

    {"n", conv2d | gemm | pool2d, gemm, extent, "1",
     "conv2d and pool2d: images in the batch. gemm: columns of the result.", set_n, nullptr},
    {"c", conv2d | pool2d, conv2d | pool2d, extent, "", "Input channels.", set_plane<&C::c, &P::c>, nullptr},
    {"h", conv2d | pool2d, conv2d | pool2d, extent, "", "Input height.", set_plane<&C::h, &P::h>, nullptr},
    {"w", conv2d | pool2d, conv2d | pool2d, extent, "", "Input width.", set_plane<&C::w, &P::w>, nullptr},
    {"k", conv2d | gemm, conv2d | gemm, extent, "", "conv2d: output channels. gemm: length of the sum.", set_k,
     nullptr},
    {"r", conv2d | pool2d, conv2d, extent, "", "Kernel height. pool2d: window height; default: h.",
     set_plane<&C::r, &P::r>, nullptr},
    {"s", conv2d | pool2d, conv2d, extent, "", "Kernel width. pool2d: window width; default: w.",
     set_plane<&C::s, &P::s>, nullptr},
    {"m", gemm, gemm, extent, "", "Rows of the result.", set_gemm<&G::m>, nullptr},
    {"stride", conv2d | pool2d, 0, own, "1", "Steps of the kernel; a number, or [y, x].", nullptr,
     read_pair<PairTarget{&C::stride_y, &P::stride_y}, PairTarget{&C::stride_x, &P::stride_x}, false>},
    {"pad", conv2d | pool2d, 0, own, "0",
     "Zeros around the input; a number, or [y, x]. pool2d: places that no window counts.", nullptr,
     read_pair<PairTarget{&C::pad_y, &P::pad_y}, PairTarget{&C::pad_x, &P::pad_x}, true>},
    {"dilation", conv2d, 0, own, "1", "Distance between the kernel's taps; a number, or [y, x].", nullptr,
     read_pair<PairTarget{&C::dilation_y, nullptr}, PairTarget{&C::dilation_x, nullptr}, false>},
    {"groups", conv2d, 0, extent, "1", "Number of channel groups; groups = c is a depthwise convolution.",
     set_conv<&C::groups>, nullptr},
    {"pool", pool2d, pool2d, word_of(pools), "", "Maximum or average of each window.", set_pool, nullptr},
    {"shape", shaped, shaped, own, "", "One to four extents. softmax works along the last dimension.", nullptr,
     read_shape},
    {"activation", weighted | add | activation, activation, word_of(activations), "\"none\"",
     "Function that is applied to each output. relu6 is min(max(x, 0), 6).", set_activation, nullptr},
    {"accuracy", conv2d | table, 0, word_of(accuracies), "\"direct\"",
     "\"winograd\" allows the larger error of Winograd's transforms.", set_accuracy, nullptr},

    {"input", numeric, numeric, text_value, "",
     "A .npy file or a PNG, relative to this file, or \"random:SEED\". gemm: the matrix A.",
     set_tensor<&JobConfig::input>, nullptr},
    {"addend", add, add, text_value, "", "As input; what is added to it.", set_tensor<&JobConfig::addend>, nullptr},
    {"weights", weighted, weighted, text_value, "",
     "As input; shape [k, c/groups, r, s]. gemm: the matrix B. \"he:SEED\": random numbers in ±sqrt(6 / n), n being "
     "the products of one output.",
     set_tensor<&JobConfig::weights>, nullptr},
    {"bias", weighted, 0, text_value, "", "As input; shape [k] (gemm: [n]). Default: no bias.", set_bias, nullptr},
    {"output", numeric, 0, text_value, "",
     "File for the result (.npy or .png), relative to the working directory. Default: none. A table's jobs put the "
     "name of their row before the extension: \"out.npy\" becomes \"out-ROW.npy\".",
     set_text<&JobConfig::output>, nullptr},
    {"verify", every, 0, boolean_value, "false", "Whether the whole output is compared with an independent reference.",
     set_verify, nullptr},
    {"tolerance", every, 0, own, "",
     "Allowed difference between an output and its reference for each element: a number (relative to the expected "
     "element) or { absolute = A, relative = R }. Default: a derived bound for layers; for `expect` of a "
     "kernel a value for its type.",
     nullptr, read_tolerance},
    {"keep_failed", every, 0, boolean_value, "false", "Whether results are written if verification failed.",
     set_keep_failed, nullptr},
    {"alpha", every, 0, word_of(alphas), "\"keep\"",
     "Treatment of a PNG's alpha channel. \"keep\": a channel of its own if c = 4 (grey: 2); with c = 3 (grey: 1) it "
     "is dropped with a note. \"drop\": dropped. \"premultiply\": colours are multiplied by it.",
     set_alpha, nullptr},
    {"device", every, 0, text_value, "", "Id of the device. Default: [device] prefer.", set_text<&JobConfig::device>,
     nullptr},

    {"source", kernel, kernel, text_value, "",
     "Source file of the kernel: GLSL (.comp), OpenCL C (.cl) or SPIR-V (.spv), relative to this file.",
     set_text<&JobConfig::source>, nullptr},
    {"text", kernel, 0, text_value, "",
     "The source itself. `source` then names it in messages, and its extension gives the language. `#include` is left "
     "to the compiler.",
     set_text<&JobConfig::text>, nullptr},
    {"entry", kernel, 0, text_value, "",
     "OpenCL C: name of the kernel function. Default: the only one in the source. In GLSL it is always main.",
     set_text<&JobConfig::entry>, nullptr},
    {"constants", kernel, 0, own, "", "A table of names and values; each becomes a #define.", nullptr, read_constants},
    {"include", kernel, 0, own, "", "Folders that `#include` searches, relative to this file.", nullptr, read_include},
    {"bindings", kernel, 0, own, "",
     "An array with one element for each storage block or argument: { input = FILE } is read (.npy, .png, .bin, .raw, "
     "\"random:SEED\", \"zeros:\"); { output = FILE, shape = [N], dtype = \"float32\" } is created and holds zeros "
     "before the kernel runs; { inout = FILE } is read and written back, or written to FILE of output = FILE; { values "
     "= [X, …] } holds numbers. `dtype` converts a file without loss. An element may have `binding = N` or `name = "
     "\"Block\"` (GLSL; default: its position), a result also `expect` and `tolerance`. OpenCL C also takes { float = "
     "X "
     "}, { int = N } and { local = BYTES }.",
     nullptr, read_bindings},
    {"images", kernel, 0, own, "",
     "GLSL: a table with one member for each image: { input = FILE }, { output = FILE, size = [W, H], format = "
     "\"rgba8\" } or { inout = FILE }. Not part of the program.",
     nullptr, read_images},
    {"samplers", kernel, 0, own, "",
     "GLSL: a table with one member for each sampler: { input = FILE, filter = \"linear\" or \"nearest\", wrap = "
     "\"clamp\", \"repeat\", \"mirror\" or \"border\" }. Not part of the program.",
     nullptr, read_samplers},
    {"uniforms", kernel, 0, own, "",
     "A table of GLSL uniforms outside blocks: numbers, booleans, or arrays of them; a matrix row by row. Not part of "
     "the program.",
     nullptr, read_uniforms},
    {"blocks", kernel, 0, own, "",
     "A table of GLSL uniform blocks, each a table of its members as in `uniforms`. Not part of the program.", nullptr,
     read_blocks},
    {"workgroup", kernel, 0, own, "", "Workgroup size, one to three numbers, for a kernel that does not declare it.",
     nullptr, read_workgroup},
    {"tune", kernel, 0, own, "",
     "A table of names and arrays of values. Each name becomes a #define, for which `kiln tune` finds the best value. "
     "Before tuning the first value is used.",
     nullptr, read_tune},
    {"grid", kernel, kernel, own, "",
     "Workgroups: one, two or three numbers, or expressions of numbers and constants such as \"(1024 + TILE - 1) / "
     "TILE\". Or { input = TENSOR, first = ELEMENT }: three uint32 that the device reads when the kernel begins.",
     nullptr, read_grid},
    {"expect", kernel, 0, text_value, "", "The .npy file with which `verify` compares the only result.",
     set_text<&JobConfig::expect>, nullptr},
};

// What other tools call a key, where no spelling is near.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName other_names[] = {
    {"options", "constants"}, {"build_options", "constants"}, {"defines", "constants"},
    {"define", "constants"},  {"macros", "constants"},        {"file", "source"},
    {"shader", "source"},     {"kernel", "source"},           {"local_size", "workgroup"},
    {"block", "workgroup"},   {"threads", "workgroup"},       {"global_size", "grid"},
    {"groups", "grid"},       {"buffers", "bindings"},        {"inputs", "bindings"},
    {"outputs", "bindings"},  {"args", "bindings"},           {"arguments", "bindings"},
    {"params", "uniforms"},   {"push_constants", "uniforms"},
};

}  // namespace

std::span<const JobKeyEntry> job_key_table() noexcept { return entries; }
std::span<const JobOperation> job_operations() noexcept { return operations_of_jobs; }

const JobKeyEntry* find_job_key(std::string_view name) noexcept {
  for (const JobKeyEntry& key : entries) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

bool has_form(JobForms forms, JobForm form) noexcept { return (forms & bit(form)) != 0; }

std::string nearest_job_key(std::string_view name, JobForm form) {
  const auto* other = std::ranges::find(other_names, name, &OtherName::theirs);
  if (other != std::end(other_names)) {
    const JobKeyEntry* key = find_job_key(other->ours);
    if (key != nullptr && has_form(key->used_by, form)) return std::string(other->ours);
  }
  std::vector<std::string_view> names;
  for (const JobKeyEntry& key : job_key_table()) {
    if (form == JobForm::invalid || has_form(key.used_by, form)) names.push_back(key.name);
  }
  return std::string(nearest_word(name, names));
}

ValueRule extent_rule() noexcept { return extent; }
ValueRule padding_rule() noexcept { return padding; }

}  // namespace kiln::config
