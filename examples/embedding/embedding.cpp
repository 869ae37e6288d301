// A small application around Kiln: one convolution on whatever device serves it, compared with the reference; then that
// and one of its output, recorded and replayed as one job.
#include <kiln/config_reader.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

// Embedders may set these themselves; what drivers keep for later processes then lies in Kiln's folder.
void adopt_driver_caches(const kiln::Config& config) {
  for (const auto& [name, value] : kiln::driver_environment(config)) {
    const bool unfit = name == "MESA_SHADER_CACHE_DIR" && !kiln::prepare_driver_cache(value).ok();
    setenv(name.c_str(), unfit ? kiln::no_driver_cache : value.c_str(), 1);
  }
}

std::shared_ptr<kiln::HostTensor> ramp(kiln::Shape shape) {
  auto tensor = kiln::HostTensor::create(kiln::DType::f32, std::move(shape));
  if (!tensor) return nullptr;
  float next = 0;
  for (float& value : (*tensor)->as<float>()) {
    value = next;
    next = next < 1 ? next + 0.125f : -1.0f;
  }
  return std::move(tensor).value();
}

// A convolution of what `first` writes, to half as many channels.
kiln::RunRequest after(const kiln::RunRequest& first) {
  kiln::Conv2dSpec spec;
  spec.c = 16, spec.h = 20, spec.w = 20, spec.k = 8, spec.r = 1, spec.s = 1;
  kiln::RunRequest request;
  request.name = "mixed";
  request.spec = spec;
  request.verify = true;
  request.tensors = {
      first.tensors[2], {nullptr, kiln::Constant::create(ramp({8, 16, 1, 1}))}, {ramp({1, 8, 20, 20}), nullptr}};
  return request;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "embedding: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  kiln::ConfigSources sources;
  if (argc > 1) sources.cache_directory = argv[1];
  const kiln::ConfigReading reading = kiln::read_config(sources);
  if (!reading.problems.empty()) return fail(reading.problems.front().text());
  const kiln::Config& config = reading.config;
  adopt_driver_caches(config);

  kiln::Registry registry;
  kiln::PluginLoader loader;
  if (const kiln::Status status = kiln::register_core(registry); !status.ok()) return fail(status.text());
  kiln::PluginLoaderOptions options;
  options.path = kiln::PluginLoader::default_path();
  loader.load(config.plugins.load, config.plugins.required, registry, options);
  auto runtime = kiln::Runtime::create(config, registry, {});
  if (!runtime) return fail(runtime.error().text());

  kiln::Conv2dSpec spec;
  spec.c = 8, spec.h = 20, spec.w = 20, spec.k = 16, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  kiln::RunRequest request;
  request.name = "ramp";
  request.spec = spec;
  request.verify = true;
  request.tensors = {{ramp({1, 8, 20, 20}), nullptr},
                     {nullptr, kiln::Constant::create(ramp({16, 8, 3, 3}))},
                     {ramp({1, 16, 20, 20}), nullptr}};
  const kiln::RunReport report = (*runtime)->run(request);
  if (!report.status.ok()) return fail(report.status.text());
  std::printf("%s served %s: verified, relative error %.2g of at most %.2g\n", report.device.id.c_str(),
              report.name.c_str(), report.max_rel_error, report.error_bound);
  if (report.verified != true) return 1;

  auto recorded = (*runtime)->record({request, after(request)});
  if (!recorded) return fail(recorded.error().text());
  for (int frame = 0; frame < 3; ++frame) {
    for (float& value : request.tensors[0].host->as<float>()) value *= 0.5f;  // the next frame, in the same tensor
    const kiln::RunReport replayed = (*runtime)->replay(**recorded);
    if (!replayed.status.ok() || replayed.verified != true) return fail(replayed.status.text());
  }
  std::printf("%s replayed %zu convolutions as one job, three times: verified\n", (*recorded)->device().id.c_str(),
              (*recorded)->jobs());
  return 0;
}
