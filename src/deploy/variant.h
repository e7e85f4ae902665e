// From one captured way of calling a function to the variant of a file that stands for it.
#pragma once

#include "capture/segment.h"
#include "package/function.h"

#include <tenon/support/decision.h>

#include <map>
#include <string>

namespace tenon::deploy {

// Why a way of calling a function is not saved. `is_final`: neither is the function then.
struct NotSaved {
  std::string why;
  bool is_final = false;
};

// The tensors of a file. Each is there once, with a name of its own.
class FileTensors {
 public:
  explicit FileTensors(package::Function& function) : function_(function) {}
  package::Place add(const Tensor& tensor, const std::string& name);

 private:
  package::Function& function_;
  std::map<const TensorImpl*, int32_t> known_;
  std::map<std::string, int> names_;
};

// Throws a NotSaved.
package::Variant make_variant(const capture::Segment& root, FileTensors& tensors);

}  // namespace tenon::deploy
