// OpenglContext: an OpenGL 4.5 core context without a surface, on an EGL device of the wanted kind, and the functions
// of OpenGL that the cases need.
//
// The destructor destroys the context and ends the display, which the radeonsi driver needs: its threads may still be
// compiling when main returns.
// Thread-safety: the thread that made it. Ownership: context and display are its own.
#pragma once

#include <glad/egl.h>
#include <glad/gl.h>

#include <set>
#include <string>

namespace kiln::witness {

struct GlFunctions {
  PFNGLGETSTRINGPROC get_string;
  PFNGLGETSTRINGIPROC get_string_i;
  PFNGLGETINTEGERVPROC get_integer;
  PFNGLGETERRORPROC get_error;
  PFNGLCREATESHADERPROC create_shader;
  PFNGLSHADERSOURCEPROC shader_source;
  PFNGLCOMPILESHADERPROC compile_shader;
  PFNGLGETSHADERIVPROC get_shader;
  PFNGLGETSHADERINFOLOGPROC get_shader_log;
  PFNGLDELETESHADERPROC delete_shader;
  PFNGLCREATEPROGRAMPROC create_program;
  PFNGLATTACHSHADERPROC attach_shader;
  PFNGLLINKPROGRAMPROC link_program;
  PFNGLGETPROGRAMIVPROC get_program;
  PFNGLGETPROGRAMINFOLOGPROC get_program_log;
  PFNGLDELETEPROGRAMPROC delete_program;
  PFNGLUSEPROGRAMPROC use_program;
  PFNGLGETUNIFORMLOCATIONPROC get_uniform_location;
  PFNGLUNIFORM1IPROC uniform_int;
  PFNGLUNIFORM1UIPROC uniform_uint;
  PFNGLUNIFORM1FPROC uniform_float;
  PFNGLUNIFORM4FVPROC uniform_vec4;
  PFNGLGENBUFFERSPROC gen_buffers;
  PFNGLBINDBUFFERPROC bind_buffer;
  PFNGLBINDBUFFERBASEPROC bind_buffer_base;
  PFNGLBUFFERDATAPROC buffer_data;
  PFNGLGETBUFFERSUBDATAPROC get_buffer_data;
  PFNGLDELETEBUFFERSPROC delete_buffers;
  PFNGLDISPATCHCOMPUTEPROC dispatch;
  PFNGLDISPATCHCOMPUTEINDIRECTPROC dispatch_indirect;
  PFNGLMEMORYBARRIERPROC memory_barrier;
  PFNGLFINISHPROC finish;
};

enum class DeviceChoice : std::uint8_t { invalid = 0, software, hardware };

class OpenglContext {
 public:
  // Throws NoRenderer where libEGL, such a device or OpenGL 4.5 on it is missing.
  explicit OpenglContext(DeviceChoice choice);
  OpenglContext(const OpenglContext&) = delete;
  OpenglContext& operator=(const OpenglContext&) = delete;
  ~OpenglContext();

  const GlFunctions& gl() const { return gl_; }
  std::string name() const;
  const std::set<std::string>& extensions() const { return extensions_; }
  EGLDisplay display() const { return display_; }
  // The function of EGL or OpenGL of that name. Throws NoRenderer where there is none.
  template <class Function>
  void find(Function& into, const char* name) const {
    into = reinterpret_cast<Function>(address_of(name));
  }
  // Throws std::runtime_error where the driver has noted an error since the last time.
  void check(const char* what) const;

 private:
  void open_library();
  EGLDeviceEXT choose_device(DeviceChoice choice) const;
  void create_context(EGLDeviceEXT device);
  void load_functions();
  __eglMustCastToProperFunctionPointerType address_of(const char* name) const;
  void close();

  PFNEGLGETPROCADDRESSPROC get_proc_address_ = nullptr;
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
  GlFunctions gl_{};
  std::set<std::string> extensions_;
};

}  // namespace kiln::witness
