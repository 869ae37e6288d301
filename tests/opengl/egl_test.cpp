// What the plugin makes of the answers of an EGL: a table of functions of this file stands for the library.
#include "egl.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "opengl/support/simulated_node.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::opengl {
namespace {

using DeviceTexts = std::map<EGLint, std::string>;

struct FakeEgl {
  std::vector<DeviceTexts> devices;  // what each says, by the name of the string
  bool lists = true;                 // eglQueryDevicesEXT succeeds
  std::string display_extensions = "EGL_KHR_surfaceless_context EGL_KHR_no_config_context";
  bool has_display = true, initializes = true, binds = true, makes_current = true;
  int contexts_refused = 0;  // the first so many
  const char* driver = nullptr;
  EGLAttrib device_of_display = 0;
  EGLint error = EGL_SUCCESS;
  std::string missing;  // a function that eglGetProcAddress does not find
  // What the plugin passed.
  std::vector<std::pair<EGLenum, void*>> displays;
  std::vector<std::vector<EGLint>> contexts;
  std::vector<EGLContext> shared_with, destroyed;
  int released = 0;
  // Fences: what fails, and the calls so far.
  bool makes_sync = true, waits_for_sync = true;
  int native_fd = -1;
  std::string fence_calls;
  std::vector<EGLAttrib> fence_attributes;
};

FakeEgl fake_egl;
int display_mark = 0, context_marks[4];

EGLDeviceEXT device_handle(std::size_t index) { return reinterpret_cast<EGLDeviceEXT>(index + 1); }

const char* fake_device_text(EGLDeviceEXT device, EGLint name) {
  const DeviceTexts& texts = fake_egl.devices.at(reinterpret_cast<std::size_t>(device) - 1);
  const auto at = texts.find(name);
  return at == texts.end() ? nullptr : at->second.c_str();
}

EGLBoolean list_fake_devices(EGLint most, EGLDeviceEXT* devices, EGLint* count) {
  const auto all = static_cast<EGLint>(fake_egl.devices.size());
  *count = devices == nullptr ? all : std::min(most, all);
  for (EGLint i = 0; devices != nullptr && i < *count; ++i) devices[i] = device_handle(static_cast<std::size_t>(i));
  return fake_egl.lists ? EGL_TRUE : EGL_FALSE;
}

EGLContext make_fake_context(EGLDisplay, EGLConfig, EGLContext share, const EGLint* attributes) {
  std::vector<EGLint> list;
  for (; *attributes != EGL_NONE; ++attributes) list.push_back(*attributes);
  fake_egl.contexts.push_back(list);
  fake_egl.shared_with.push_back(share);
  if (fake_egl.contexts.size() <= static_cast<std::size_t>(fake_egl.contexts_refused)) return EGL_NO_CONTEXT;
  return &context_marks[(fake_egl.contexts.size() - 1) % 4];
}

void unused_function() {}

EGLSync make_fake_sync(EGLDisplay, EGLenum type, const EGLAttrib* attributes) {
  fake_egl.fence_calls += type == 0x3144 ? "create " : "wrong type ";
  fake_egl.fence_attributes.clear();
  for (; attributes != nullptr && *attributes != EGL_NONE; ++attributes) {
    fake_egl.fence_attributes.push_back(*attributes);
  }
  return fake_egl.makes_sync ? &fake_egl : EGL_NO_SYNC;
}

EGLBoolean destroy_fake_sync(EGLDisplay, EGLSync) {
  fake_egl.fence_calls += "destroy ";
  return EGL_TRUE;
}

EGLBoolean wait_for_fake_sync(EGLDisplay, EGLSync, EGLint) {
  fake_egl.fence_calls += "wait ";
  return fake_egl.waits_for_sync ? EGL_TRUE : EGL_FALSE;
}

EGLint duplicate_fake_fence(EGLDisplay, EGLSync) {
  fake_egl.fence_calls += "duplicate ";
  return fake_egl.native_fd;
}

__eglMustCastToProperFunctionPointerType fake_function(const std::string& name) {
  using Any = __eglMustCastToProperFunctionPointerType;
  if (name == "eglCreateSync") return reinterpret_cast<Any>(make_fake_sync);
  if (name == "eglDestroySync") return reinterpret_cast<Any>(destroy_fake_sync);
  if (name == "eglWaitSync") return reinterpret_cast<Any>(wait_for_fake_sync);
  if (name == "eglDupNativeFenceFDANDROID") return reinterpret_cast<Any>(duplicate_fake_fence);
  return unused_function;
}

// Every function and extension is there.
EglApi whole_api() {
  EglApi all;
  all.get_proc_address = [](const char* name) -> __eglMustCastToProperFunctionPointerType {
    return name == fake_egl.missing ? nullptr : fake_function(name);
  };
  all.get_error = [] { return fake_egl.error; };
  all.query_string = [](EGLDisplay, EGLint) { return fake_egl.display_extensions.c_str(); };
  all.initialize = [](EGLDisplay, EGLint*, EGLint*) -> EGLBoolean {
    return fake_egl.initializes ? EGL_TRUE : EGL_FALSE;
  };
  all.bind_api = [](EGLenum) -> EGLBoolean { return fake_egl.binds ? EGL_TRUE : EGL_FALSE; };
  all.create_context = make_fake_context;
  all.destroy_context = [](EGLDisplay, EGLContext context) -> EGLBoolean {
    fake_egl.destroyed.push_back(context);
    return EGL_TRUE;
  };
  all.make_current = [](EGLDisplay, EGLSurface, EGLSurface, EGLContext) -> EGLBoolean {
    return fake_egl.makes_current ? EGL_TRUE : EGL_FALSE;
  };
  all.release_thread = []() -> EGLBoolean {
    ++fake_egl.released;
    return EGL_TRUE;
  };
  all.get_platform_display = [](EGLenum platform, void* device, const EGLint*) -> EGLDisplay {
    fake_egl.displays.emplace_back(platform, device);
    return fake_egl.has_display ? &display_mark : EGL_NO_DISPLAY;
  };
  all.query_devices = list_fake_devices;
  all.query_device_string = fake_device_text;
  all.query_display_attrib = [](EGLDisplay, EGLint, EGLAttrib* value) -> EGLBoolean {
    *value = fake_egl.device_of_display;
    return fake_egl.device_of_display != 0 ? EGL_TRUE : EGL_FALSE;
  };
  all.get_display_driver_name = [](EGLDisplay) { return fake_egl.driver; };
  all.client_extensions = "EGL_EXT_platform_base EGL_EXT_platform_device EGL_MESA_platform_surfaceless";
  return all;
}

std::string empty_file(const std::string& name) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / (name + "-" + std::to_string(getpid()));
  std::ofstream(path) << "";
  return path.string();
}

std::string words_of(const Status& status) { return status.message; }

template <class T>
std::string words_of(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

}  // namespace

TEST_CASE("opengl: egl: an extension is a whole word of the list", "[opengl][egl]") {
  struct Listed {
    const char *list, *name;
    bool found;
  };
  for (const auto& [list, name, found] :
       {Listed{"", "A", false}, Listed{"A", "A", true}, Listed{"A B C", "A", true}, Listed{"A B C", "B", true},
        Listed{"A B C", "C", true}, Listed{"AB C", "A", false}, Listed{"BA C", "A", false}, Listed{"C AB", "B", false},
        Listed{"AA A", "A", true}, Listed{"A_B", "A", false}, Listed{"X_A B_A A", "A", true}}) {
    INFO("'" << list << "' has " << name);
    CHECK(has_extension(list, name) == found);
  }
  CHECK(text_or_empty(nullptr) == "");
  CHECK(text_or_empty("words") == "words");
}

TEST_CASE("opengl: egl: errors have their names, and others their number", "[opengl][egl]") {
  const std::pair<EGLint, const char*> errors[] = {
      {0x3000, "EGL_SUCCESS"},       {0x3001, "EGL_NOT_INITIALIZED"},     {0x3002, "EGL_BAD_ACCESS"},
      {0x3003, "EGL_BAD_ALLOC"},     {0x3004, "EGL_BAD_ATTRIBUTE"},       {0x3005, "EGL_BAD_CONFIG"},
      {0x3006, "EGL_BAD_CONTEXT"},   {0x3007, "EGL_BAD_CURRENT_SURFACE"}, {0x3008, "EGL_BAD_DISPLAY"},
      {0x3009, "EGL_BAD_MATCH"},     {0x300A, "EGL_BAD_NATIVE_PIXMAP"},   {0x300B, "EGL_BAD_NATIVE_WINDOW"},
      {0x300C, "EGL_BAD_PARAMETER"}, {0x300D, "EGL_BAD_SURFACE"},         {0x300E, "EGL_CONTEXT_LOST"},
      {0x300F, "EGL error 0x300f"},  {0x12, "EGL error 0x0012"}};
  const EglApi egl = whole_api();
  for (const auto& [number, name] : errors) {
    fake_egl.error = number;
    CHECK(egl.last_error() == name);
  }
}

TEST_CASE("opengl: egl: a library without one of the functions is no EGL", "[opengl][egl]") {
  for (const char* name : {"eglGetError", "eglQueryString", "eglInitialize", "eglBindAPI", "eglCreateContext",
                           "eglDestroyContext", "eglMakeCurrent", "eglReleaseThread"}) {
    INFO(name);
    support::egl_switches().missing_function = name;
    const auto opened = EglApi::open(KILN_WRAPPING_EGL);
    support::egl_switches().missing_function.clear();
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == StatusCode::unavailable);
    CHECK(opened.error().message ==
          std::string(KILN_WRAPPING_EGL) + ": eglGetProcAddress does not return the functions of EGL 1.5");
  }
}

TEST_CASE("opengl: egl: functions of an extension are used only where the extension is", "[opengl][egl]") {
  struct Expected {
    const char* extensions;
    bool displays, lists, asks;
  };
  for (const auto& [extensions, displays, lists, asks] :
       {Expected{"EGL_EXT_other", false, false, false}, Expected{"EGL_EXT_platform_base", true, false, false},
        Expected{"EGL_EXT_device_base", false, true, true}, Expected{"EGL_EXT_device_enumeration", false, true, false},
        Expected{"EGL_EXT_device_query", false, false, true},
        Expected{"EGL_EXT_device_base EGL_EXT_platform_base", true, true, true}}) {
    INFO(extensions);
    support::egl_switches().client_extensions = extensions;
    const auto opened = EglApi::open(KILN_WRAPPING_EGL);
    support::egl_switches().client_extensions.clear();
    if (!opened) {
      WARN("skipped: " << opened.error().message);
      return;
    }
    CHECK(opened.value()->client_extensions == extensions);
    CHECK((opened.value()->get_platform_display != nullptr) == displays);
    CHECK((opened.value()->query_devices != nullptr) == lists);
    CHECK((opened.value()->query_device_string != nullptr) == asks);
    CHECK((opened.value()->query_display_attrib != nullptr) == asks);
  }
}

TEST_CASE("opengl: egl: devices are hardware, simulated or software by what they say", "[opengl][egl]") {
  REQUIRE(support::simulated_nodes_present());
  const std::string simulated = empty_file(support::simulated_node_mark), plain = empty_file("kiln-plain-node");
  fake_egl = {};
  fake_egl.devices = {
      {{EGL_EXTENSIONS, "EGL_MESA_device_software"}},
      {{EGL_EXTENSIONS, "EGL_EXT_device_drm EGL_EXT_device_drm_render_node"},
       {EGL_DRM_DEVICE_FILE_EXT, plain},
       {EGL_DRM_RENDER_NODE_FILE_EXT, simulated}},
      {{EGL_EXTENSIONS, "EGL_EXT_device_drm"},
       {EGL_DRM_DEVICE_FILE_EXT, plain},
       {EGL_DRM_RENDER_NODE_FILE_EXT, simulated}},
      {{EGL_EXTENSIONS, "EGL_EXT_device_drm EGL_EXT_device_drm_render_node"}, {EGL_DRM_DEVICE_FILE_EXT, plain}},
      {{EGL_EXTENSIONS, "EGL_EXT_device_drm_render_node EGL_MESA_device_software"},
       {EGL_DRM_RENDER_NODE_FILE_EXT, simulated}},
      {{EGL_DRM_DEVICE_FILE_EXT, plain}, {EGL_DRM_RENDER_NODE_FILE_EXT, plain}}};
  struct Expected {
    std::size_t index;
    DeviceKind kind;
    std::string node;
  };
  const Expected order[] = {{2, DeviceKind::gpu, plain},   {3, DeviceKind::gpu, plain},
                            {5, DeviceKind::gpu, ""},      {1, DeviceKind::simulated, simulated},
                            {0, DeviceKind::software, ""}, {4, DeviceKind::software, simulated}};
  const std::vector<EglDevice> devices = list_devices(whole_api());
  REQUIRE(devices.size() == std::size(order));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    INFO(i);
    CHECK(devices[i].device == device_handle(order[i].index));
    CHECK(devices[i].kind == order[i].kind);
    CHECK(devices[i].node == order[i].node);
  }
  std::filesystem::remove(simulated);
  std::filesystem::remove(plain);
}

TEST_CASE("opengl: egl: where nothing is listed, the surfaceless platform is the one device", "[opengl][egl]") {
  fake_egl = {};
  fake_egl.devices = {{}};
  const auto found = [](const EglApi& egl) { return list_devices(egl); };
  const auto is_surfaceless = [](const std::vector<EglDevice>& devices) {
    return devices.size() == 1 && devices[0].device == EGL_NO_DEVICE_EXT && devices[0].kind == DeviceKind::invalid &&
           devices[0].node.empty();
  };
  CHECK(found(whole_api()).size() == 1);
  CHECK_FALSE(is_surfaceless(found(whole_api())));
  EglApi without = whole_api();
  without.query_devices = nullptr;
  CHECK(is_surfaceless(found(without)));
  without = whole_api();
  without.query_device_string = nullptr;
  CHECK(is_surfaceless(found(without)));
  without = whole_api();
  without.client_extensions = "EGL_MESA_platform_surfaceless";
  CHECK(is_surfaceless(found(without)));
  without.client_extensions = "EGL_EXT_platform_base";
  CHECK(found(without).empty());
  without = whole_api();
  without.get_platform_display = nullptr;
  CHECK(found(without).empty());
  fake_egl.lists = false;
  CHECK(found(whole_api()).empty());
  fake_egl.lists = true;
  fake_egl.devices.clear();
  CHECK(found(whole_api()).empty());
}

TEST_CASE("opengl: egl: a display says what it lacks, and which driver it has", "[opengl][egl]") {
  fake_egl = {};
  fake_egl.devices = {{{EGL_EXTENSIONS, "EGL_MESA_device_software"}}};
  const EglDevice listed{device_handle(0), DeviceKind::gpu, {}}, surfaceless;
  auto display = open_display(whole_api(), listed);
  REQUIRE(display.has_value());
  CHECK(display->handle == &display_mark);
  CHECK(display->kind == DeviceKind::gpu);
  CHECK_FALSE(display->mesa);
  REQUIRE(open_display(whole_api(), surfaceless).has_value());
  REQUIRE(fake_egl.displays.size() == 2);
  CHECK(fake_egl.displays[0] == std::pair<EGLenum, void*>(0x313F, device_handle(0)));  // EGL_PLATFORM_DEVICE_EXT
  CHECK(fake_egl.displays[1] == std::pair<EGLenum, void*>(0x31DD, nullptr));           // EGL_PLATFORM_SURFACELESS_MESA

  struct Kind {
    const char *extension, *driver;
    DeviceKind of_listed, of_surfaceless;
  };
  constexpr DeviceKind gpu = DeviceKind::gpu, software = DeviceKind::software;
  for (const bool tells_device : {false, true}) {
    fake_egl.device_of_display = tells_device ? 1 : 0;
    const DeviceKind asked = tells_device ? software : gpu;
    for (const auto& [extension, driver, of_listed, of_surfaceless] :
         {Kind{" EGL_MESA_query_driver", "swrast", software, software},
          Kind{" EGL_MESA_query_driver", "kms_swrast", software, software},
          Kind{" EGL_MESA_query_driver", "radeonsi", gpu, asked}, Kind{" EGL_MESA_query_driver", nullptr, gpu, asked},
          Kind{"", "swrast", gpu, asked}}) {
      INFO((driver == nullptr ? "no driver" : driver) << extension << tells_device);
      fake_egl.display_extensions = std::string("EGL_KHR_no_config_context EGL_KHR_surfaceless_context") + extension;
      fake_egl.driver = driver;
      display = open_display(whole_api(), listed);
      REQUIRE(display.has_value());
      CHECK(display->kind == of_listed);
      CHECK(display->mesa == (extension[0] != '\0'));
      CHECK(open_display(whole_api(), surfaceless).value().kind == of_surfaceless);
    }
  }

  fake_egl.display_extensions = "EGL_KHR_no_config_context";
  CHECK(words_of(open_display(whole_api(), listed)) == "the EGL display has no EGL_KHR_surfaceless_context");
  fake_egl.display_extensions = "EGL_KHR_surfaceless_context";
  CHECK(words_of(open_display(whole_api(), listed)) == "the EGL display has no EGL_KHR_no_config_context");
  fake_egl.error = EGL_BAD_ALLOC;
  fake_egl.initializes = false;
  CHECK(words_of(open_display(whole_api(), listed)) == "eglInitialize: EGL_BAD_ALLOC");
  fake_egl.has_display = false;
  CHECK(words_of(open_display(whole_api(), listed)) == "eglGetPlatformDisplayEXT: EGL_BAD_ALLOC");
}

TEST_CASE("opengl: egl: a context is asked for with less robustness until the driver makes it", "[opengl][egl]") {
  const std::vector<EGLint> version{0x3098, 4, 0x30FB, 3, 0x30FD, 1};  // 4.3, the core profile
  const auto with = [&version](std::vector<EGLint> more) {
    more.insert(more.begin(), version.begin(), version.end());
    return more;
  };
  const std::vector<EGLint> loss{0x31BD, 0x31BF};
  const auto shared = std::make_shared<const EglApi>(whole_api());
  for (const int refused : {0, 1, 2, 3}) {
    INFO(refused << " contexts are refused");
    fake_egl = {};
    fake_egl.error = EGL_BAD_MATCH;
    fake_egl.contexts_refused = refused;
    {
      const auto context = EglContext::create(shared, &display_mark, DebugOutput::off);
      const std::vector<EGLint> tried[] = {with({0x31B2, 1, 0x31BD, 0x31BF}), with(loss), version};
      REQUIRE(fake_egl.contexts.size() == static_cast<std::size_t>(std::min(refused + 1, 3)));
      for (std::size_t i = 0; i < fake_egl.contexts.size(); ++i) CHECK(fake_egl.contexts[i] == tried[i]);
      REQUIRE(context.has_value() == (refused < 3));
      if (!context) {
        CHECK(words_of(context) == "eglCreateContext for OpenGL 4.3 core: EGL_BAD_MATCH");
        continue;
      }
      const auto second = EglContext::create_shared(**context);
      REQUIRE(second.has_value());
      CHECK(fake_egl.contexts.back() == tried[refused]);
      CHECK(fake_egl.shared_with.back() == &context_marks[refused]);
      CHECK(fake_egl.shared_with.front() == EGL_NO_CONTEXT);
      CHECK(fake_egl.destroyed.empty());
    }
    CHECK(fake_egl.destroyed.size() == (refused < 3 ? 2u : 0u));
    CHECK(fake_egl.released == (refused < 3 ? 2 : 0));
  }
  fake_egl = {};
  REQUIRE(EglContext::create(shared, &display_mark, DebugOutput::on).has_value());
  CHECK(fake_egl.contexts.front() == with({0x31B0, 1, 0x31B2, 1, 0x31BD, 0x31BF}));
  fake_egl.error = EGL_BAD_PARAMETER;
  fake_egl.makes_current = false;
  CHECK(words_of(EglContext::create(shared, &display_mark, DebugOutput::off)) == "eglMakeCurrent: EGL_BAD_PARAMETER");
  fake_egl.binds = false;
  CHECK(words_of(EglContext::create(shared, &display_mark, DebugOutput::off)) ==
        "eglBindAPI(EGL_OPENGL_API): EGL_BAD_PARAMETER");
}

TEST_CASE("opengl: egl: native fences need the extension and each of their functions", "[opengl][egl]") {
  fake_egl = {};
  CHECK_FALSE(NativeFences::find(whole_api(), &display_mark).supported());
  fake_egl.display_extensions += " EGL_ANDROID_native_fence_sync";
  CHECK(NativeFences::find(whole_api(), &display_mark).supported());
  for (const char* name : {"eglCreateSync", "eglDestroySync", "eglWaitSync", "eglDupNativeFenceFDANDROID"}) {
    INFO(name);
    fake_egl.missing = name;
    CHECK_FALSE(NativeFences::find(whole_api(), &display_mark).supported());
  }
  fake_egl.missing.clear();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::string what = "descriptor " + std::to_string(null.get());
  const Status no_fence = NativeFences::find(whole_api(), &display_mark).wait(null.get());
  CHECK(no_fence.code == StatusCode::invalid_argument);
  CHECK(words_of(no_fence) == what + " is not a sync_file");
}

TEST_CASE("opengl: egl: a native fence is made of a flushed fence, and says what fails", "[opengl][egl]") {
  fake_egl = {};
  fake_egl.display_extensions += " EGL_ANDROID_native_fence_sync";
  fake_egl.error = 0x3003;
  const NativeFences fences = NativeFences::find(whole_api(), &display_mark);
  Gl gl{};
  gl.Flush = [] { fake_egl.fence_calls += "flush "; };
  fake_egl.native_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  {
    const auto made = fences.make(gl);
    REQUIRE(made);
    CHECK(made->get() == fake_egl.native_fd);
    CHECK(fake_egl.fence_calls == "create flush duplicate destroy ");
    CHECK(fake_egl.fence_attributes.empty());
  }
  fake_egl.native_fd = -1;
  CHECK(words_of(fences.make(gl)) == "eglDupNativeFenceFDANDROID failed: EGL error 12291");
  CHECK(fake_egl.fence_calls == "create flush duplicate destroy create flush duplicate destroy ");
  fake_egl.makes_sync = false;
  fake_egl.fence_calls.clear();
  CHECK(words_of(fences.make(gl)) == "eglCreateSync failed: EGL error 12291");
  CHECK(fake_egl.fence_calls == "create ");
}

TEST_CASE("opengl: egl: a native fence of a descriptor is waited for, and says what fails", "[opengl][egl]") {
  REQUIRE(support::simulated_nodes_present());  // which are sync_files too
  fake_egl = {};
  fake_egl.display_extensions += " EGL_ANDROID_native_fence_sync";
  fake_egl.error = 0x3004;
  const NativeFences fences = NativeFences::find(whole_api(), &display_mark);
  const std::string path = empty_file(support::simulated_node_mark);
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  const std::string what = "descriptor " + std::to_string(file.get());
  CHECK(fences.wait(file.get()).ok());
  CHECK(fake_egl.fence_calls == "create wait destroy ");
  REQUIRE(fake_egl.fence_attributes.size() == 2);
  CHECK(fake_egl.fence_attributes[0] == 0x3145);
  const UniqueFd given(static_cast<int>(fake_egl.fence_attributes[1]));  // the fence's own, which stays open
  CHECK(given.get() != file.get());
  CHECK(fcntl(given.get(), F_GETFD) == FD_CLOEXEC);
  fake_egl.waits_for_sync = false;
  const Status waited = fences.wait(file.get());
  const UniqueFd second(static_cast<int>(fake_egl.fence_attributes[1]));
  CHECK(waited.code == StatusCode::internal);
  CHECK(words_of(waited) == what + ": eglWaitSync: 12292");
  CHECK(fake_egl.fence_calls == "create wait destroy create wait destroy ");
  fake_egl.makes_sync = false;
  fake_egl.fence_calls.clear();
  const Status made = fences.wait(file.get());
  CHECK(made.code == StatusCode::invalid_argument);
  CHECK(words_of(made) == what + ": eglCreateSync: 12292");
  CHECK(fake_egl.fence_calls == "create ");
  CHECK(fcntl(static_cast<int>(fake_egl.fence_attributes[1]), F_GETFD) == -1);  // closed again
  std::filesystem::remove(path);
}

TEST_CASE("opengl: egl: nodes that are no device say nothing and are not gone", "[opengl][egl]") {
  REQUIRE(support::simulated_nodes_present());
  const std::string simulated = empty_file(support::simulated_node_mark), plain = empty_file("kiln-plain-node");
  CHECK(drm_description(simulated) == "kiln-simulated gfx1100");
  CHECK(drm_description(plain) == std::nullopt);
  CHECK(drm_description(plain + "-none") == std::nullopt);
  for (const std::string& node : {simulated, plain, plain + "-none", std::string()}) CHECK_FALSE(drm_is_gone(node));
  CHECK(drm_physical_id("") == "");
  CHECK(drm_physical_id(plain) == "drm:" + plain);  // no device file
  CHECK(drm_physical_id(plain + "-none") == "drm:" + plain + "-none");
  CHECK(drm_physical_id("/dev/null") == "drm:/dev/null");  // a device without hardware
  std::filesystem::remove(simulated);
  std::filesystem::remove(plain);
}

}  // namespace kiln::opengl
