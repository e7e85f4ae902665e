// libtorch's header of this name.
#pragma once

#include <tenon/compat/torch.h>
