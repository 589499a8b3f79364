"""What Open WebUI's page says for two wishes, in each of its languages.

Written by `scripts/directives.py`: the first digits of the SHA-256 of each text.
"""

DETAILED = """
03a45b 078c8e 0d4183 0e91ef 10d840 138dce 13b536 15a9dc 163e47 17b649 18df80
29de7f 2e4b93 32c287 347147 38f3bd 390989 3998d2 4526b5 505603 57b144 5cb98f
5edd93 62c2c8 63068c 6411bb 6527f3 70d47d 76aa65 7b24ea 7c9e0a 7d7646 7e07e1
830a7a 9874ca 9a3059 9bf1c5 a13b35 a39afb a60e81 a617ed a7ea08 abfbd8 ae1911
aeece0 b0f55b b765b1 ba5901 bcd184 c69792 c80f54 cdf936 ce72b2 cea309 d48086
eed41b f6374c f87c63 fa34f8
"""

CONCISE = """
0434e0 07c416 14f978 181692 19b4d0 1e4852 2284bb 25a02f 2c7347 30ccda 36c1f1
36d7ba 39c49c 3de689 46bc29 481781 4b1a74 4c9e08 4f236a 540704 57f61e 6257c5
63d83e 6716da 6eb68c 7129e6 76bcb2 776531 7833d8 7982e9 7aab4f 7adcf1 7e3c59
891c2b 8c25e2 8edac0 94cd05 9a6477 9c7406 a1f6bd a63ebf a6fe53 a78aed a7d652
b5b614 b626eb b6aeea b6f538 c162d1 c4a122 d16f5e dee774 e46994 e8cb0d f59e1a
f7c9fe fd7fb4
"""
