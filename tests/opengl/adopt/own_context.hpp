// OwnContext: an OpenGL context without a window, made as an application makes its own.
//
// Thread-safety: one thread, where it is current from its construction on. Ownership: destroys its context; the display
// is the process's.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kiln::test {

class OwnContext {
 public:
  OwnContext();  // of the newest version there is
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  ~OwnContext();

  bool usable() const noexcept { return context_ != nullptr; }
  void make_current() const;
  void make_none_current() const;

 private:
  void* display_ = nullptr;
  void* context_ = nullptr;
};

using Function = void (*)();
Function find_gl(const char* name);

// By the context that is current.
bool is_program(unsigned name);
bool is_linked(unsigned name);
float uniform(unsigned program, const char* name);
void set_uniform(unsigned program, const char* name, float value);
int block_binding(unsigned program, const char* block);  // of a storage block
void set_block_binding(unsigned program, const char* block, unsigned binding);
// Gives the context a state of the application's own: a current program and pipeline, something bound to every target,
// unit and index that a compute program or a transfer uses, and unusual values beside. Readable by gl_state().
void set_unusual_state();
std::map<std::string, std::vector<int>> gl_state();  // by the name of the constant
void cause_an_error();                               // as an application might leave one behind
bool has_error();

}  // namespace kiln::test
