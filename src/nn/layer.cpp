#include <tenon/nn/layer.h>

namespace tenon::nn {

FunctionLayer::FunctionLayer(std::string kind, std::string details, Function function)
    : function_(std::move(function)) {
  describe(std::move(kind), std::move(details));
}

Tensor FunctionLayer::operator()(const Tensor& input) const { return run(input, function_); }

Lambda::Lambda(Function function, std::string name) : FunctionLayer(std::move(name), "", std::move(function)) {}
Identity::Identity() : FunctionLayer("Identity", "", [](const Tensor& input) { return input; }) {}

}  // namespace tenon::nn
