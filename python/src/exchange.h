// Tensors across the border to PyTorch, without copies: DLPack's table of C functions, which the type of the other
// library's tensors carries (`__dlpack_c_exchange_api__`). The structs are those of DLPack 1.x.
#pragma once

#include <tenon/core/tensor.h>

#include <Python.h>

namespace tenon::python {

struct ExchangeTable;

// One other library's tensors.
class Exchange {
 public:
  // `capsule`: the attribute of the tensor type. An Error if its major version is not ours.
  explicit Exchange(PyObject* capsule);

  // A tensor on the memory of the other one, good while the object lives. What is not supported is an error of Python's
  // (PythonError) or an Error of ours.
  Tensor borrow(PyObject* object) const;
  // A new reference to a tensor of the other library on our memory, which lets go of it on whatever thread it dies,
  // without Python's lock.
  PyObject* give(Tensor tensor) const;

 private:
  const ExchangeTable* table_;
};

// Thrown when Python's error indicator is set.
struct PythonError {};

}  // namespace tenon::python
