// dispatch_nothing: a program's dispatch over no workgroups, which makes a driver do what it leaves until the first
// one.
//
// Indirect, because a driver may return from a direct dispatch over nothing at once; it learns of an indirect one only
// after it has made its machine code. Thread-safety: on a context's thread; waits until the driver is done.
#pragma once

#include "gl/gl_error.hpp"

namespace kiln::opengl {

void dispatch_nothing(const Gl& gl, GLuint program);

}  // namespace kiln::opengl
