"""What secrets look like: the shapes of keys that services hand out, and the words that stand before a password.

The shapes come from detect-secrets where it has one. Its detectors for words and for entropy are not used: in running
text they hit commit ids, UUIDs, pictures and plain sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

IDENTITY_NUMBER: Final = "identity-number"
PHONE_NUMBER: Final = "phone-number"
BANK_CARD: Final = "bank-card"
PERSONAL_KINDS: Final = frozenset({IDENTITY_NUMBER, PHONE_NUMBER, BANK_CARD})

# Sign, kind, shape: wherever the sign begins a word, the shape is tried there.
OWN_SHAPES: Final = tuple(
    (sign, kind, re.compile(shape))
    for kind, shape, *signs in (
        ("gateway-key", r"mgk_[\w-]{20,}", "mgk_"),
        ("github-token", r"github_pat_\w{22,}", "github_pat_"),
        ("anthropic-key", r"sk-ant-[\w-]{20,}", "sk-ant-"),
        ("openai-key", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?(?=[\w-]*\d)[\w-]{20,}", "sk-"),
        ("huggingface-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
        ("google-key", r"AIza[\w-]{35}", "AIza"),
        ("google-oauth-secret", r"GOCSPX-[\w-]{28}", "GOCSPX-"),
        ("npm-token", r"npm_[A-Za-z0-9]{36}", "npm_"),
        ("slack-token", r"xapp-\d-[A-Za-z0-9-]{20,}|xox[a-z]-[A-Za-z0-9-]{20,}", "xapp-", "xox"),
        ("stripe-key", r"(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}", "sk_", "rk_", "whsec_"),
        ("alibaba-key", r"LTAI[A-Za-z0-9]{12,26}", "LTAI"),
        ("tencent-key", r"AKID[A-Za-z0-9]{32}", "AKID"),
        ("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", "dop_v1_", "doo_v1_", "dor_v1_"),
        ("gitlab-token", r"gl(?:agent|oas|ptt|imt|cbt)-[\w-]{20,}", "glagent-", "gloas-", "glptt-", "glimt-", "glcbt-"),
        ("database-token", r"(?:dapi|pscale_(?:tkn|pw|oauth)_)[\w-]{32,}", "dapi", "pscale_"),
        ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET-KEY-"),
    )
    for sign in signs
)
JWT: Final = re.compile(r"eyJ[\w-]{8,}+\.eyJ[\w-]{4,}+(?:\.[\w-]*+)?")
PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
PRIVATE_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# A further line of a key whose end is missing: its encoded text, or one of its headers.
PRIVATE_KEY_LINE: Final = re.compile(r"\r?\n(?:[A-Za-z0-9+/=]{16,}+|[A-Z][\w-]{1,30}: [^\n]{0,200}+)(?=\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape that detect-secrets knows. `back`: how many characters before the sign it begins; `group`: the value."""

    sign: str
    kind: str
    pattern: re.Pattern[str]
    back: int = 0
    group: int = 0


@dataclass(frozen=True, slots=True)
class KnownShapes:
    """The shapes of detect-secrets: those with a sign, and two that have none."""

    signed: tuple[Shape, ...]
    discord: re.Pattern[str]
    telegram: re.Pattern[str]
    is_token: Callable[[str], bool]


@cache
def known_shapes() -> KnownShapes:
    """The shapes of detect-secrets' detectors, loaded when first asked for.

    Only the compiled patterns are taken, which any thread may use; its settings are global and stay untouched.
    """
    from detect_secrets.plugins.aws import AWSKeyDetector
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.basic_auth import BasicAuthDetector
    from detect_secrets.plugins.discord import DiscordBotTokenDetector
    from detect_secrets.plugins.github_token import GitHubTokenDetector
    from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
    from detect_secrets.plugins.jwt import JwtTokenDetector
    from detect_secrets.plugins.mailchimp import MailchimpDetector
    from detect_secrets.plugins.pypi_token import PypiTokenDetector
    from detect_secrets.plugins.sendgrid import SendGridDetector
    from detect_secrets.plugins.slack import SlackDetector
    from detect_secrets.plugins.square_oauth import SquareOAuthDetector
    from detect_secrets.plugins.stripe import StripeDetector
    from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
    from detect_secrets.plugins.twilio import TwilioKeyDetector

    gitlab, pypi = _patterns(GitLabTokenDetector), _patterns(PypiTokenDetector)
    signed = [
        *(Shape(sign, "aws-key", _patterns(AWSKeyDetector)[0]) for sign in ("AKIA", "ASIA", "ABIA", "ACCA", "A3T")),
        Shape("AccountKey=", "azure-key", _patterns(AzureStorageKeyDetector)[0]),
        Shape("://", "basic-auth", _patterns(BasicAuthDetector)[0], group=1),
        *(Shape(f"gh{one}_", "github-token", _patterns(GitHubTokenDetector)[0]) for one in "pousr"),
        *(Shape(f"{one}-", "gitlab-token", gitlab[0]) for one in ("glpat", "gldt", "glft", "glsoat", "glrt")),
        Shape("GR1348941", "gitlab-token", gitlab[1]),
        Shape("-us", "mailchimp-key", _patterns(MailchimpDetector)[0], back=32),
        Shape("pypi-AgEIcHlwaS5vcmc", "pypi-token", pypi[0]),
        Shape("pypi-AgENdGVzdC5weXBpLm9yZw", "pypi-token", pypi[1]),
        Shape("SG.", "sendgrid-key", _patterns(SendGridDetector)[0]),
        Shape("https://hooks.slack.com/services/", "slack-token", _patterns(SlackDetector)[1]),
        Shape("sq0csp-", "square-secret", _patterns(SquareOAuthDetector)[0]),
        *(Shape(f"{one}k_live_", "stripe-key", _patterns(StripeDetector)[0]) for one in "rs"),
        Shape("SK", "twilio-key", _patterns(TwilioKeyDetector)[1]),
    ]
    return KnownShapes(
        tuple(signed),
        _patterns(DiscordBotTokenDetector)[0],
        _patterns(TelegramBotTokenDetector)[0],
        JwtTokenDetector.is_formally_valid,
    )


def _patterns(detector: Any) -> list[re.Pattern[str]]:
    return list(detector.denylist)


# Words before a value, in lower case, and what they announce. Prose that merely speaks of passwords has no value.
PASSWORD_WORDS: Final = ("password", "passwd", "passphrase", "passcode", "pwd", "db_pass", "contraseña")
PASSWORD_WORDS_EAST: Final = ("密码", "密碼", "口令", "パスワード", "비밀번호")
# `key` announces a secret only after one of these.
KEY_OWNERS: Final = re.compile(
    r"(?:api|access|secret|auth|account|private|service|encryption|client|signing|master|subscription)[_ .-]?$", re.I
)
KEY_WORDS_EAST: Final = ("密钥", "密鑰", "秘钥", "私钥", "令牌", "アクセスキー")
CODE_WORDS_EAST: Final = ("验证码", "驗證碼", "校验码", "动态码")
CARD_WORDS: Final = ("卡号", "卡號", "银行卡", "銀行卡", "信用卡", "储蓄卡", "card number", "credit card", "bank card")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Values that are no secret wherever they stand: they speak about it, or stand in its place.
HARMLESS: Final = _words(
    "password passwd pass passphrase passcode pwd secret token key string str text bytes int bool none "
    "null nil true false yes no on off required optional missing empty unset default hidden unknown "
    "invalid expired changed forgotten lost reset removed redacted masked encrypted hashed incorrect "
    "wrong correct example sample placeholder changeme username user name input getpass prompt env "
    "environ value undefined manager policy strong weak same above below here there keychain keyring "
    "vault bitwarden keepass keepassxc 1password lastpass secretstr secretbytes protected rotated stored "
    "generated authentication authorization allowed"
)
# A value that begins with one of these tells how a secret is made or kept.
METHODS: Final = _words(
    "base32 base58 base64 sha1 sha256 sha512 md5 bcrypt scrypt argon2 argon2id pbkdf2 aes128 aes256 "
    "rsa2048 rsa4096 utf8 ascii oauth oauth2 2fa mfa jwt hs256 rs256 ed25519 x25519 p256 sm2 sm4 k8s your "
    "example changeme dummy"
)
