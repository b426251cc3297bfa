"""A bag of embeddings classifies sentences: a vocabulary made here, offsets in collate_fn,
clipping, accuracy over batches.
"""

import random
from collections import Counter, OrderedDict

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.dataset import random_split

GOOD = ["great", "lovely", "fine", "charming", "bright", "superb"]
BAD = ["dull", "poor", "awful", "boring", "grim", "weak"]
PLAIN = ["the", "film", "was", "and", "its", "plot", "with", "a", "cast", "that", "music", "of", "scenes"]


def corpus(count):
    rng = random.Random(1)
    for _ in range(count):
        label = rng.randint(1, 2)
        words = [rng.choice(PLAIN) for _ in range(rng.randint(4, 10))]
        for _ in range(2):
            words.insert(rng.randrange(len(words)), rng.choice(GOOD if label == 2 else BAD))
        yield label, " ".join(words)


class Vocabulary:
    def __init__(self, sentences, specials=("<unk>",)):
        counter = Counter(word for sentence in sentences for word in sentence.split())
        ordered = OrderedDict(sorted(counter.items(), key=lambda item: item[1], reverse=True))
        self.index = {word: number for number, word in enumerate([*specials, *ordered])}

    def __call__(self, words):
        return [self.index.get(word, 0) for word in words]

    def __len__(self):
        return len(self.index)


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    data = list(corpus(600))
    vocabulary = Vocabulary(sentence for _, sentence in data)

    def collate_batch(batch):
        labels, texts, offsets = [], [], [0]
        for label, sentence in batch:
            labels.append(label - 1)
            processed = torch.tensor(vocabulary(sentence.split()), dtype=torch.int64)
            texts.append(processed)
            offsets.append(processed.size(0))
        offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
        return torch.tensor(labels, dtype=torch.int64).to(device), torch.cat(texts).to(device), offsets.to(device)

    train, test = random_split(data, [500, 100])
    dataloader = DataLoader(train, batch_size=16, shuffle=True, collate_fn=collate_batch)
    model = TextClassificationModel(len(vocabulary), 16, 2).to(device)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.5)

    def evaluate(loader):
        model.eval()
        correct = total = 0
        with torch.no_grad():
            for label, text, offsets in loader:
                predicted = model(text, offsets)
                correct += (predicted.argmax(1) == label).sum().item()
                total += label.size(0)
        return correct / total

    before = evaluate(DataLoader(test, batch_size=25, collate_fn=collate_batch))
    for _epoch in range(5):
        model.train()
        for label, text, offsets in dataloader:
            optimizer.zero_grad()
            loss = criterion(model(text, offsets), label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        scheduler.step()
    after = evaluate(DataLoader(test, batch_size=25, collate_fn=collate_batch))
    assert after > 0.9 > before, (before, after)
    print("learned", before, after)
