"""The models of models.cpp in Python: the same layers, sizes and formulas, as {name: (module, example inputs)}."""
import torch
from torch import nn
from torch.nn import functional as F

import attention


def example(*sizes):
    return torch.randn(*sizes, requires_grad=True)


class Composite(nn.Module):
    """Layers and a function over them."""

    def __init__(self, run, **layers):
        super().__init__()
        self.run = run
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *args):
        return self.run(self, *args)


class Cube(torch.autograd.Function):
    """Its backward is not the derivative, as in C++."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(context, gradient):
        return 2 * context.saved_tensors[0] * gradient


def no_grad_inside(model, x):
    with torch.no_grad():
        target = model.a(x).sigmoid()
    return F.mse_loss(model.b(model.a(x)), target) + model.b(x.detach()).mean()


def residual_convolutions(model, x):
    x = model.norm(model.first(x)).relu_()
    x = F.max_pool2d(x + model.second(x), 2)
    return model.head(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


def tied_weights(model, ids, targets):
    logits = F.linear(model.words(ids), model.words.weight)
    return F.cross_entropy(logits.view(-1, 7), targets.view(-1))


def lstm(model, x):
    output, (hidden, cell) = model.lstm(x)
    return output, hidden, cell


def many_results(model, x):
    y = model.fc(x).tanh()
    return y, x, x.view(2, 6).t(), y.argmax(1), x.detach(), y.sum(), model.fc.weight


def writes(model, x):
    y = model.fc(x).clone()
    y.select(1, 0).mul_(2)
    y.index_put_((torch.tensor([0, 2]),), y.select(0, 1).unsqueeze(0) * 3)
    with torch.no_grad():
        model.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
        model.count += 1
    return (y - model.mean).softmax(1)


def nested_arguments(model, batch, pair):
    y = model.fc(batch["x"]) * 0.5
    return {"logits": y + pair[0], "extra": y.exp()}


def writing_model():
    model = Composite(writes, fc=nn.Linear(4, 4))
    model.register_buffer("mean", torch.zeros(4))
    model.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    return model


def chains():
    chain, linear = nn.Sequential, nn.Linear
    return {
        "mlp": (chain(linear(6, 16), nn.ReLU(), linear(16, 3)), [example(4, 6)]),
        "mlp_gelu": (chain(linear(6, 16), nn.GELU(), linear(16, 16), nn.GELU("tanh"), linear(16, 3)), [example(4, 6)]),
        "mlp_silu_mish": (chain(linear(6, 8), nn.SiLU(), linear(8, 8), nn.Mish()), [example(4, 6)]),
        "mlp_bounded": (chain(linear(6, 8), nn.Sigmoid(), linear(8, 8), nn.Tanh(), linear(8, 8), nn.Hardtanh()), [example(4, 6)]),
        "mlp_hard": (chain(linear(6, 8), nn.Hardswish(), linear(8, 8), nn.Hardsigmoid(), linear(8, 8), nn.LeakyReLU(0.1),
                           linear(8, 4), nn.ELU()), [example(4, 6)]),
        "layer_norm": (chain(linear(6, 8), nn.LayerNorm(8), nn.ReLU(), linear(8, 2)), [example(5, 6)]),
        "group_norm": (chain(nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU()), [example(2, 4, 6, 6)]),
        "batch_norm_1d": (chain(linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), linear(4, 2)), [example(7, 5)]),
        "batch_norm_2d": (chain(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), [example(2, 3, 8, 8)]),
        "instance_norm": (chain(nn.Conv1d(2, 4, 3), nn.InstanceNorm1d(4, affine=True)), [example(2, 2, 12)]),
        "transposed_convolution": (chain(nn.ConvTranspose2d(3, 4, 3, stride=2), nn.ReLU()), [example(2, 3, 5, 5)]),
        "dropout": (chain(linear(6, 8), nn.ReLU(), nn.Dropout(0.4), linear(8, 8), nn.Dropout(0.2), linear(8, 2)), [example(5, 6)]),
    }


def composites():
    ids = torch.tensor([[1, 2, 2, 2, 7], [0, 7, 1, 10, 0]])
    return {
        "residual_convolutions": (
            Composite(residual_convolutions, first=nn.Conv2d(3, 8, 3, padding=1), norm=nn.BatchNorm2d(8),
                      second=nn.Conv2d(8, 8, 3, padding=1, groups=2), head=nn.Linear(8, 5)), [example(4, 3, 8, 8)]),
        "embedding": (Composite(lambda model, ids: model.head(model.words(ids).mean(1)),
                                words=nn.Embedding(11, 6, padding_idx=0), head=nn.Linear(6, 3)), [ids]),
        "tied_weights": (Composite(tied_weights, words=nn.Embedding(7, 4)),
                         [torch.randint(7, (2, 3)), torch.randint(7, (2, 3))]),
        "lstm": (Composite(lstm, lstm=nn.LSTM(4, 6, num_layers=2, batch_first=True)), [example(3, 5, 4)]),
        "gru": (Composite(lambda model, x: model.gru(x)[0], gru=nn.GRU(4, 6)), [example(5, 3, 4)]),
        "custom_function": (Composite(lambda model, x: Cube.apply(model.fc(x)) + 1, fc=nn.Linear(4, 4)), [example(3, 4)]),
        "no_grad_inside": (Composite(no_grad_inside, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), [example(5, 4)]),
        "many_results": (Composite(many_results, fc=nn.Linear(4, 4)), [example(3, 4)]),
        "writes": (writing_model(), [example(3, 4)]),
        "nested_arguments": (Composite(nested_arguments, fc=nn.Linear(3, 2)), [{"x": example(2, 3)}, (example(2),)]),
    }


def transformers():
    return {
        "multihead_attention": (attention.Attention(8, 2), [example(4, 2, 8), example(5, 2, 8)]),
        "scaled_dot_product_attention": (attention.FusedAttention(8, 2), [example(2, 6, 8)]),
        "transformer_encoder_layer": (attention.EncoderLayer(8, 2, 16), [example(5, 3, 8)]),
        "transformer_decoder_layer": (attention.DecoderLayer(8, 2, 16), [example(4, 3, 8), example(6, 3, 8)]),
        "character_transformer": (attention.CharacterTransformer(13, 8, 2, 6), [torch.randint(13, (2, 6))]),
    }


def python_models():
    torch.manual_seed(17)
    return {**chains(), **composites(), **transformers()}
