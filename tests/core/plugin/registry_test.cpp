// The registry: names are taken once, a merge takes all or nothing.
#include <catch2/catch.hpp>

#include <kiln/registry.hpp>

using namespace kiln;
using Catch::Contains;

namespace {

Result<std::unique_ptr<Driver>> no_driver(const DriverContext&) { return unavailable("none"); }
Result<std::unique_ptr<ProgramCache>> no_cache(const CacheContext&) { return unavailable("none"); }
Result<std::unique_ptr<KernelGenerator>> no_generator(const GeneratorContext&) { return unavailable("none"); }

}  // namespace

TEST_CASE("registry: the first keeps a name, the message names both") {
  Registry registry;
  CHECK(registry.add_cache("core", "tiered", no_cache).ok());
  const Status status = registry.add_cache("mine", "tiered", no_cache);
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK(status.message == "cache 'tiered' of plugin 'mine': already registered by plugin 'core'");
}

TEST_CASE("registry: the error for an unknown name lists the known ones") {
  Registry registry;
  CHECK_THAT(registry.cache("tiered").error().message, Contains("cache 'tiered': not registered (registered: none)"));
  CHECK(registry.add_cache("core", "tiered", no_cache).ok());
  CHECK_THAT(registry.cache("other").error().message, Contains("(registered: 'tiered')"));
  CHECK(registry.cache("other").error().code == StatusCode::not_found);
}

TEST_CASE("registry: a merge takes all or nothing") {
  Registry registry, other;
  CHECK(registry.add_driver("a", "gpu", no_driver).ok());
  CHECK(other.add_cache("b", "new", no_cache).ok());
  CHECK(other.add_driver("b", "gpu", no_driver).ok());
  const Status status = registry.merge(std::move(other));
  CHECK(status.message == "driver 'gpu' of plugin 'b': already registered by plugin 'a'");
  CHECK_FALSE(registry.cache("new"));
  CHECK(registry.drivers().at("gpu").plugin == "a");
}

TEST_CASE("registry: tools that need no device have names of their own, taken once") {
  const AheadCompilerFactory no_compiler = [](const OfflineContext&) -> Result<std::unique_ptr<AheadCompiler>> {
    return unavailable("none");
  };
  const StreamPrinterFactory no_printer = [](const OfflineContext&) -> Result<std::unique_ptr<StreamPrinter>> {
    return unavailable("none");
  };
  Registry registry, other;
  CHECK(registry.add_ahead_compiler("a", "one", no_compiler).ok());
  CHECK(registry.add_stream_printer("a", "one", no_printer).ok());
  CHECK(registry.add_ahead_compiler("b", "one", no_compiler).message ==
        "ahead compiler 'one' of plugin 'b': already registered by plugin 'a'");
  CHECK(other.add_ahead_compiler("b", "two", no_compiler).ok());
  CHECK(other.add_stream_printer("b", "one", no_printer).ok());
  CHECK(registry.merge(std::move(other)).message ==
        "stream printer 'one' of plugin 'b': already registered by plugin 'a'");
  CHECK(registry.ahead_compilers().size() == 1);
}

TEST_CASE("registry: configuration keys are published once") {
  Registry registry, other;
  CHECK(registry.add_config_keys("a", {}).ok());
  CHECK(registry.add_config_keys("a", {}).code == StatusCode::invalid_argument);
  CHECK(other.add_config_keys("a", {}).ok());
  CHECK(registry.merge(std::move(other)).code == StatusCode::invalid_argument);
}

TEST_CASE("registry: the chosen generator comes first, the others by name") {
  Registry registry;
  for (const char* name : {"c", "a", "b"}) CHECK(registry.add_generator(name, name, {}, no_generator).ok());
  const auto order = registry.generators("b");
  REQUIRE(order);
  REQUIRE(order->size() == 3);
  CHECK((*order)[0]->plugin == "b");
  CHECK((*order)[1]->plugin == "a");
  CHECK((*order)[2]->plugin == "c");
}

TEST_CASE("registry: each kind has names of its own, and the error for an unknown one lists those of its kind") {
  const ExecutorFactory no_executor = [](const ExecutorContext&) -> Result<std::unique_ptr<Executor>> {
    return unavailable("none");
  };
  const SelectorFactory no_selector = [](const SelectorContext&) -> Result<std::unique_ptr<DeviceSelector>> {
    return unavailable("none");
  };
  Registry registry;
  CHECK(registry.add_executor("core", "ring", no_executor).ok());
  CHECK(registry.add_executor("mine", "other", no_executor).ok());
  CHECK(registry.add_selector("core", "ring", no_selector).ok());
  CHECK(registry.add_executor("mine", "ring", no_executor).message ==
        "executor 'ring' of plugin 'mine': already registered by plugin 'core'");
  CHECK(registry.add_selector("mine", "ring", no_selector).message ==
        "selector 'ring' of plugin 'mine': already registered by plugin 'core'");
  CHECK(registry.executor("ring"));
  CHECK(registry.executor("other"));
  CHECK(registry.selector("ring"));
  CHECK(registry.executor("none").error().text() ==
        "not_found: executor 'none': not registered (registered: 'other', 'ring')");
  CHECK(registry.selector("other").error().text() ==
        "not_found: selector 'other': not registered (registered: 'ring')");
  CHECK(registry.generators("one").error().text() == "not_found: generator 'one': not registered (registered: none)");
  CHECK(registry.generators().empty());
  CHECK(registry.add_generator("b", "two", {Dialect::glsl}, no_generator).ok());
  CHECK(registry.add_generator("a", "one", {Dialect::opencl_c}, no_generator).ok());
  CHECK(registry.add_generator("c", "one", {}, no_generator).message ==
        "generator 'one' of plugin 'c': already registered by plugin 'a'");
  const auto all = registry.generators();
  REQUIRE(all.size() == 2);
  CHECK(all[0]->plugin == "a");
  CHECK(all[0]->dialects == std::vector<Dialect>{Dialect::opencl_c});
  CHECK(all[1]->plugin == "b");
}

TEST_CASE("registry: a merge takes each kind over, and the files of its plugins") {
  const RemoteStoreFactory no_store = [](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
    return unavailable("none");
  };
  Registry registry, other, third;
  registry.set_file("a", "/a.so");
  CHECK(registry.file_of("a") == "/a.so");
  registry.set_file("a", "/other.so");
  CHECK(registry.file_of("a") == "/other.so");
  CHECK(registry.file_of("b").empty());
  other.set_file("b", "/b.so");
  CHECK(other.add_driver("b", "gpu", no_driver).ok());
  CHECK(other.add_cache("b", "small", no_cache).ok());
  CHECK(other.add_generator("b", "one", {}, no_generator).ok());
  CHECK(other.add_remote("b", "http", no_store).ok());
  CHECK(other.add_config_keys("b", {}).ok());
  CHECK(registry.merge(std::move(other)).ok());
  CHECK(registry.file_of("b") == "/b.so");
  CHECK(registry.drivers().at("gpu").plugin == "b");
  CHECK(registry.cache("small"));
  CHECK(registry.generators().size() == 1);
  CHECK(registry.remotes().at("http").plugin == "b");
  CHECK(registry.config_keys().contains("b"));
  CHECK(third.add_remote("c", "http", no_store).ok());
  CHECK(registry.merge(std::move(third)).message ==
        "remote store 'http' of plugin 'c': already registered by plugin 'b'");
}
