#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "module.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "interpreter.hpp"

namespace kiln::python {
namespace {

// --- DLPack 0 and 1, as its specification lays them out

struct DlDevice {
  std::int32_t type, id;
};
struct DlType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t rank;
  DlType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  std::uint64_t flags;
  DlTensor tensor;
};

constexpr std::int32_t dl_cpu = 1;
constexpr std::uint64_t dl_read_only = 1;
constexpr const char *dl_name = "dltensor", *dl_used = "used_dltensor";
constexpr const char *dl_versioned_name = "dltensor_versioned", *dl_versioned_used = "used_dltensor_versioned";

constexpr std::size_t alignment = 64;
constexpr int most_rank = 32;

struct TypeFacts {
  kiln_type type;
  const char* format;  // of the buffer protocol
  const char* name;
  std::uint8_t code, bits;  // of DLPack
};
constexpr TypeFacts types[] = {
    {KILN_F32, "f", "float32", 2, 32}, {KILN_F64, "d", "float64", 2, 64}, {KILN_I32, "i", "int32", 0, 32},
    {KILN_U32, "I", "uint32", 1, 32},  {KILN_U8, "B", "uint8", 1, 8},     {KILN_I8, "b", "int8", 0, 8},
    {KILN_I16, "h", "int16", 0, 16},   {KILN_U16, "H", "uint16", 1, 16},  {KILN_I64, "q", "int64", 0, 64},
    {KILN_U64, "Q", "uint64", 1, 64},  {KILN_F16, "e", "float16", 2, 16}, {KILN_BOOL, "?", "bool", 6, 8},
};
constexpr const char* type_names = "float16, float32, float64, int8 to int64, uint8 to uint64 or bool";

PyObject* memory_type = nullptr;  // lives as long as the process

struct Memory {
  PyObject_HEAD const TypeFacts* facts;
  std::byte* data;
  int rank;
  Py_ssize_t bytes;
  bool read_only;
  Py_ssize_t shape[most_rank], strides[most_rank];
  std::int64_t dl_shape[most_rank], dl_strides[most_rank];
  void* owned;         // by aligned_alloc
  DlManaged* managed;  // of another library
  DlVersioned* versioned;
};

Memory* memory_of(PyObject* object) noexcept { return reinterpret_cast<Memory*>(object); }

Object new_memory(PyTypeObject* type, const TypeFacts* facts) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Object made(allocate(type, 0));
  if (made) memory_of(made.get())->facts = facts;
  return made;
}

// Strides and size of a shape in C order. false: too large; an exception is set.
bool lay_out(Memory& memory, int rank) {
  Py_ssize_t bytes = memory.facts->bits / 8, elements = 1;
  memory.rank = rank;
  for (int at = rank; at-- > 0;) {
    memory.strides[at] = bytes;
    memory.dl_strides[at] = elements;
    memory.dl_shape[at] = memory.shape[at];
    if (memory.shape[at] < 0 || __builtin_mul_overflow(bytes, memory.shape[at], &bytes) ||
        bytes > Py_ssize_t{1} << 40) {
      PyErr_SetString(PyExc_ValueError, "shape: expected dimensions of at least 0 and at most 2**40 bytes");
      return false;
    }
    elements *= memory.shape[at];
  }
  memory.bytes = bytes;
  return true;
}

PyObject* empty(PyObject* type, PyObject* arguments) {
  PyObject* shape = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &shape, &name) == 0) return nullptr;
  const TypeFacts* facts = nullptr;
  for (const TypeFacts& one : types) {
    if (std::strcmp(one.name, name) == 0) facts = &one;
  }
  if (facts == nullptr) {
    return PyErr_Format(PyExc_TypeError, "dtype '%s': expected %s", name, type_names);
  }
  const Py_ssize_t rank = PySequence_Size(shape);
  if (rank < 0) return nullptr;
  if (rank > most_rank) return PyErr_Format(PyExc_ValueError, "%zd dimensions, expected at most %d", rank, most_rank);
  Object made = new_memory(reinterpret_cast<PyTypeObject*>(type), facts);
  if (!made) return nullptr;
  Memory& memory = *memory_of(made.get());
  for (Py_ssize_t at = 0; at < rank; ++at) {
    const Object extent(in_python([&] { return PySequence_GetItem(shape, at); }));
    if (!extent) return nullptr;
    memory.shape[at] = PyLong_AsSsize_t(extent.get());
    if (memory.shape[at] == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  if (!lay_out(memory, static_cast<int>(rank))) return nullptr;
  const std::size_t padded = (static_cast<std::size_t>(memory.bytes) + alignment) / alignment * alignment;
  memory.owned = std::aligned_alloc(alignment, padded);
  if (memory.owned == nullptr) return PyErr_NoMemory();
  std::memset(memory.owned, 0, padded);
  memory.data = static_cast<std::byte*>(memory.owned);
  return made.release();
}

PyObject* from_dlpack(PyObject* type, PyObject* capsule) {
  auto* versioned = PyCapsule_IsValid(capsule, dl_versioned_name) != 0
                        ? static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule, dl_versioned_name))
                        : nullptr;
  if (versioned != nullptr && versioned->major != 1) {
    return PyErr_Format(PyExc_BufferError, "DLPack version %u, expected 0 or 1",
                        static_cast<unsigned>(versioned->major));
  }
  auto* managed = versioned == nullptr ? static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, dl_name)) : nullptr;
  if (versioned == nullptr && managed == nullptr) return nullptr;
  const DlTensor& tensor = versioned != nullptr ? versioned->tensor : managed->tensor;
  const TypeFacts* facts = nullptr;
  for (const TypeFacts& one : types) {
    if (one.code == tensor.type.code && one.bits == tensor.type.bits && tensor.type.lanes == 1) facts = &one;
  }
  if (facts == nullptr) {
    return PyErr_Format(PyExc_BufferError, "DLPack type of code %d, %d bits, %d lanes: expected %s", tensor.type.code,
                        tensor.type.bits, tensor.type.lanes, type_names);
  }
  if (tensor.device.type != dl_cpu) {
    return PyErr_Format(PyExc_BufferError, "DLPack device %d, expected 1: memory of the host", tensor.device.type);
  }
  if (tensor.rank < 0 || tensor.rank > most_rank) return PyErr_Format(PyExc_BufferError, "%d dimensions", tensor.rank);
  Object made = new_memory(reinterpret_cast<PyTypeObject*>(type), facts);
  if (!made) return nullptr;
  Memory& memory = *memory_of(made.get());
  for (int at = 0; at < tensor.rank; ++at) memory.shape[at] = static_cast<Py_ssize_t>(tensor.shape[at]);
  if (!lay_out(memory, tensor.rank)) return nullptr;
  for (int at = 0; tensor.strides != nullptr && at < tensor.rank; ++at) {
    if (tensor.shape[at] > 1 && tensor.strides[at] != memory.dl_strides[at]) {
      return PyErr_Format(PyExc_BufferError, "stride %lld in dimension %d, expected %lld: a tensor in C order",
                          static_cast<long long>(tensor.strides[at]), at,
                          static_cast<long long>(memory.dl_strides[at]));
    }
  }
  if (tensor.data == nullptr && memory.bytes != 0) {
    return PyErr_Format(PyExc_BufferError, "no data, expected %zd bytes", memory.bytes);
  }
  if (tensor.data != nullptr) memory.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  memory.read_only = versioned != nullptr && (versioned->flags & dl_read_only) != 0;
  if (PyCapsule_SetName(capsule, versioned != nullptr ? dl_versioned_used : dl_used) != 0) return nullptr;
  memory.managed = managed;
  memory.versioned = versioned;
  return made.release();
}

// The tensor of an export: it refers to the memory, which the deleter lets go of.
DlTensor exported(Memory& memory) noexcept {
  return {memory.data,
          {dl_cpu, 0},
          static_cast<std::int32_t>(memory.rank),
          {memory.facts->code, memory.facts->bits, 1},
          memory.dl_shape,
          memory.dl_strides,
          0};
}

template <class Managed>
void let_go(Managed* managed) {
  {
    const InPython python;
    if (python) {
      const SavedError saved;
      Py_DECREF(static_cast<PyObject*>(managed->context));
    }
  }
  delete managed;
}

template <class Managed>
PyObject* capsule_for(Managed* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* of) {
    const char* called = PyCapsule_GetName(of);
    if (called == nullptr || std::strncmp(called, "used", 4) == 0) return;  // its consumer has it
    auto* left = static_cast<Managed*>(PyCapsule_GetPointer(of, called));
    left->deleter(left);
  });
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

// Two integers of a tuple, or those there were for None. false: an exception is set.
bool read_pair(PyObject* object, const char* name, int& first, int& second) {
  if (object == Py_None) return true;
  if (PyTuple_Check(object) != 0 && PyTuple_Size(object) == 2) {
    return PyArg_ParseTuple(object, "ii", &first, &second) != 0;
  }
  PyErr_Format(PyExc_TypeError, "%s: found %R, expected two integers in a tuple", name, object);
  return false;
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* to_dlpack(PyObject* self, PyObject* arguments, PyObject* named) {
  static const char* const names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (PyArg_ParseTupleAndKeywords(arguments, named, "|$OOOO", const_cast<char**>(names), &stream, &version, &device,
                                  &copy) == 0) {
    return nullptr;
  }
  if (stream != Py_None) return PyErr_Format(PyExc_BufferError, "stream: expected None for memory of the host");
  if (copy == Py_True) return PyErr_Format(PyExc_BufferError, "copy=True is not supported. Copy the array first");
  int type = dl_cpu, id = 0, major = 0, minor = 0;
  if (!read_pair(device, "dl_device", type, id) || !read_pair(version, "max_version", major, minor)) return nullptr;
  if (type != dl_cpu) return PyErr_Format(PyExc_BufferError, "dl_device %d, expected 1: memory of the host", type);
  Memory& memory = *memory_of(self);
  if (major >= 1) {
    auto* made = new (std::nothrow) DlVersioned{
        1, 0, self, [](DlVersioned* of) { let_go(of); }, memory.read_only ? dl_read_only : 0, exported(memory)};
    if (made == nullptr) return PyErr_NoMemory();
    Py_INCREF(self);
    return capsule_for(made, dl_versioned_name);
  }
  if (memory.read_only) {
    return PyErr_Format(PyExc_BufferError, "read-only memory needs DLPack 1: max_version=(1, 0)");
  }
  auto* made = new (std::nothrow) DlManaged{exported(memory), self, [](DlManaged* of) { let_go(of); }};
  if (made == nullptr) return PyErr_NoMemory();
  Py_INCREF(self);
  return capsule_for(made, dl_name);
}

PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", dl_cpu, 0); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Memory& memory = *memory_of(self);
  if ((flags & PyBUF_WRITABLE) != 0 && memory.read_only) {
    PyErr_SetString(PyExc_BufferError, "the memory is read-only");
    view->obj = nullptr;
    return -1;
  }
  view->buf = memory.data;
  Py_INCREF(self);
  view->obj = self;
  view->len = memory.bytes;
  view->readonly = memory.read_only ? 1 : 0;
  view->itemsize = memory.facts->bits / 8;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(memory.facts->format) : nullptr;
  view->ndim = memory.rank;
  view->shape = (flags & PyBUF_ND) != 0 ? memory.shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? memory.strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

PyObject* shape_of(PyObject* self, void*) {
  const Memory& memory = *memory_of(self);
  Object shape(PyTuple_New(memory.rank));
  for (int at = 0; shape && at < memory.rank; ++at) {
    PyObject* extent = PyLong_FromSsize_t(memory.shape[at]);
    if (extent == nullptr || PyTuple_SetItem(shape.get(), at, extent) != 0) return nullptr;
  }
  return shape.release();
}

PyObject* dtype_of(PyObject* self, void*) { return PyUnicode_FromString(memory_of(self)->facts->name); }

PyObject* address_of(PyObject* self, void*) { return PyLong_FromVoidPtr(memory_of(self)->data); }

PyObject* represent(PyObject* self) {
  const Object shape(shape_of(self, nullptr));
  if (!shape) return nullptr;
  return PyUnicode_FromFormat("<kiln.Memory %s %R%s>", memory_of(self)->facts->name, shape.get(),
                              memory_of(self)->read_only ? ", read-only" : "");
}

void destroy(PyObject* self) {
  Memory& memory = *memory_of(self);
  std::free(memory.owned);
  const SavedError saved;  // another library's deleter may run Python
  if (memory.managed != nullptr && memory.managed->deleter != nullptr) memory.managed->deleter(memory.managed);
  if (memory.versioned != nullptr && memory.versioned->deleter != nullptr) memory.versioned->deleter(memory.versioned);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMethodDef methods[] = {
    {"empty", empty, METH_VARARGS | METH_CLASS, "empty(shape, dtype): zeros, aligned as jobs need it"},
    {"from_dlpack", from_dlpack, METH_O | METH_CLASS, "from_dlpack(capsule): takes the tensor over"},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_dlpack)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"shape", shape_of, nullptr, nullptr, nullptr},
    {"dtype", dtype_of, nullptr, nullptr, nullptr},
    {"address", address_of, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <class Function>
void* slot(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const char* supported_types() noexcept { return type_names; }

kiln_type type_of(const char* format, Py_ssize_t item_bytes) noexcept {
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return static_cast<kiln_type>(0);
  char kind = format[0];  // long is int or long long
  if (kind == 'l') kind = item_bytes == 8 ? 'q' : 'i';
  if (kind == 'L') kind = item_bytes == 8 ? 'Q' : 'I';
  for (const TypeFacts& facts : types) {
    if (facts.format[0] == kind && item_bytes == facts.bits / 8) return facts.type;
  }
  return static_cast<kiln_type>(0);
}

bool make_memory_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(destroy)},
      {Py_tp_repr, slot(represent)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_bf_getbuffer, slot(get_buffer)},
      {Py_tp_doc, const_cast<char*>("Tensor memory: buffer protocol and DLPack.")},
      {0, nullptr},
  };
  PyType_Spec spec = {"kiln.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  memory_type = PyType_FromSpec(&spec);
  return memory_type != nullptr;
}

bool add_memory_type(PyObject* module) { return PyModule_AddObjectRef(module, "Memory", memory_type) == 0; }

}  // namespace kiln::python
