"""Networks of `transformers`, small and with random weights, trained by torch.compile(backend="tenon") and in eager.

    PYTHONPATH=build/python $TENON_PEER_PYTHON bench/torch_networks.py [NAME]... [--steps N]

For each: the largest difference of the loss; the largest difference of a gradient, as a share of the largest gradient
of the network; seconds of the first step, and of it inside our backend; graphs, parts, calls that are ours and that are
PyTorch's; parts that failed.
"""
import argparse
import copy
import time
import warnings

import torch
import transformers

import tenon

WORDS = 60
SIZES = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
          "image_size": 32, "patch_size": 8}


def tokens():
    return torch.randint(3, WORDS, (2, 12))


def text():
    each = tokens()
    return {"input_ids": each, "labels": each}


def pairs():
    return {"input_ids": tokens(), "labels": tokens()}


def images():
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.randint(5, (2,))}


# Model, configuration, its settings, a batch. Without dropout: eager's random numbers are not what is compared.
NETWORKS = {
    "bert": ("BertForMaskedLM", "BertConfig",
             {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, pairs),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config",
             {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
              "attn_pdrop": 0.0}, text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**SIZES, "num_key_value_heads": 2}, text),
    "t5": ("T5ForConditionalGeneration", "T5Config",
           {"vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
            "dropout_rate": 0.0, "decoder_start_token_id": 0}, pairs),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig",
                {"vocab_size": WORDS, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
                 "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
                 "decoder_ffn_dim": 64, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20,
                 "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                lambda: {"input_features": torch.randn(2, 8, 40), "labels": tokens()}),
    "clip": ("CLIPModel", "CLIPConfig",
             {"text_config": {**SIZES, "max_position_embeddings": 20, "eos_token_id": 2}, "vision_config": VISION,
              "projection_dim": 16},
             lambda: {"input_ids": tokens(), "pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True}),
    "vit": ("ViTForImageClassification", "ViTConfig",
            {**VISION, "num_labels": 5, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, images),
    "resnet": ("ResNetForImageClassification", "ResNetConfig",
               {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic",
                "num_labels": 5}, images),
    "convnext": ("ConvNextForImageClassification", "ConvNextConfig",
                 {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 5}, images),
    "mamba": ("MambaForCausalLM", "MambaConfig",
              {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, text),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**SIZES, "num_key_value_heads": 2, "num_local_experts": 4},
                text),
}


def difference_of_gradients(ours, theirs):
    pairs_of = [(mine.grad, other.grad) for mine, other in zip(ours.parameters(), theirs.parameters())
                if other.grad is not None]
    largest = max(other.abs().max().item() for _, other in pairs_of)
    return max((mine - other).abs().max().item() for mine, other in pairs_of) / largest


def train(name, steps):
    model, configuration, settings, batch = NETWORKS[name]
    torch._dynamo.reset()
    tenon.reset_torch_report()
    torch.manual_seed(0)
    eager = getattr(transformers, model)(getattr(transformers, configuration)(**settings)).train()
    ours = copy.deepcopy(eager)
    compiled = torch.compile(ours, backend="tenon")
    optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-3, eps=1e-4) for each in (eager, ours)]
    loss_differs, gradient_differs, first = 0.0, 0.0, None
    for _ in range(steps):
        data, losses = batch(), []
        for run, optimizer in zip((eager, compiled), optimizers):
            optimizer.zero_grad()
            began = time.perf_counter()
            loss = run(**data).loss
            loss.backward()
            if run is compiled and first is None:
                first = time.perf_counter() - began
            losses.append(loss.item())
        loss_differs = max(loss_differs, abs(losses[0] - losses[1]))
        gradient_differs = max(gradient_differs, difference_of_gradients(ours, eager))
        for optimizer in optimizers:
            optimizer.step()
    report = tenon.torch_report()
    inside = sum(graph.milliseconds for graph in report.graphs) / 1000
    parts = sum(graph.part_count for graph in report.graphs)
    return [f"{loss_differs:.1e}", f"{gradient_differs:.1e}", f"{first:.1f}", f"{inside:.2f}", len(report.graphs),
            parts, report.native, len(report.foreign), len(report.failures)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    unknown = set(options.names) - set(NETWORKS)
    if unknown:
        parser.error(f"unknown networks {sorted(unknown)}: expected some of {', '.join(NETWORKS)}")
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    columns = ["loss", "gradients", "first s", "ours s", "graphs", "parts", "native", "PyTorch's", "failed"]
    print(f"{'':10}" + "".join(f"{word:>11}" for word in columns))
    for name in options.names or NETWORKS:
        print(f"{name:10}" + "".join(f"{word!s:>11}" for word in train(name, options.steps)), flush=True)


if __name__ == "__main__":
    main()
