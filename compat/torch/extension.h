// What an extension written for libtorch includes.
#pragma once

#include <tenon/compat/torch.h>
