"""Dragoman connects AI agents to every tool server. `from dragoman import Hub` is the way in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.access.approvals import RequestedCall as RequestedCall
    from dragoman.agent import Agent as Agent
    from dragoman.agent import AgentNumbers as AgentNumbers
    from dragoman.agents.connector_query import ConnectorQuery as ConnectorQuery
    from dragoman.agents.models import FoundModel as FoundModel
    from dragoman.agents.models import ModelChoice as ModelChoice
    from dragoman.agents.models import Models as Models
    from dragoman.agents.rollout import RolloutFigures as RolloutFigures
    from dragoman.agents.rollout import RolloutPlan as RolloutPlan
    from dragoman.agents.rollout import RolloutThresholds as RolloutThresholds
    from dragoman.agents.work_context import ConnectorCard as ConnectorCard
    from dragoman.bundle import AnnotationOverride as AnnotationOverride
    from dragoman.bundle import Bundle as Bundle
    from dragoman.bundle import BundleEntry as BundleEntry
    from dragoman.bundle import ParameterOverride as ParameterOverride
    from dragoman.bundle import ToolOverride as ToolOverride
    from dragoman.catalog.bundles import ShownEntry as ShownEntry
    from dragoman.catalog.catalog import ToolInfo as ToolInfo
    from dragoman.catalog.changes import ToolChange as ToolChange
    from dragoman.catalog.changes import ToolChanges as ToolChanges
    from dragoman.catalog.footprints import Footprints as Footprints
    from dragoman.catalog.search.query import SearchHit as SearchHit
    from dragoman.catalog.search.query import SearchQuery as SearchQuery
    from dragoman.catalog.search.query import SearchResults as SearchResults
    from dragoman.cluster.places import PlaceCounts as PlaceCounts
    from dragoman.cluster.protocol import Node as Node
    from dragoman.connections.boxes.boxes import BoxFacts as BoxFacts
    from dragoman.connections.boxes.boxes import BoxNeed as BoxNeed
    from dragoman.connections.boxes.homes import BoxHome as BoxHome
    from dragoman.connections.native.source import NativeTool as NativeTool
    from dragoman.connections.oauth.flow import AuthorizationCallback as AuthorizationCallback
    from dragoman.connections.oauth.flow import StartedAuthorization as StartedAuthorization
    from dragoman.connections.source import ConnectionStatus as ConnectionStatus
    from dragoman.connections.source import ServerNotice as ServerNotice
    from dragoman.connector import Configuration as Configuration
    from dragoman.connector import Connector as Connector
    from dragoman.discovery.inputs import CommandArgument as CommandArgument
    from dragoman.discovery.inputs import InputTemplate as InputTemplate
    from dragoman.discovery.inputs import RegistryInput as RegistryInput
    from dragoman.discovery.registry import RegistryPage as RegistryPage
    from dragoman.discovery.servers import InstallMethod as InstallMethod
    from dragoman.discovery.servers import RegistryServer as RegistryServer
    from dragoman.errors import AnswerCut as AnswerCut
    from dragoman.errors import ApprovalPending as ApprovalPending
    from dragoman.errors import ApprovalRefused as ApprovalRefused
    from dragoman.errors import CallerFault as CallerFault
    from dragoman.errors import ClusterFault as ClusterFault
    from dragoman.errors import ClusterUnavailable as ClusterUnavailable
    from dragoman.errors import Conflict as Conflict
    from dragoman.errors import ConnectTimeout as ConnectTimeout
    from dragoman.errors import ContextTooLong as ContextTooLong
    from dragoman.errors import Denied as Denied
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.errors import Forbidden as Forbidden
    from dragoman.errors import HookFailed as HookFailed
    from dragoman.errors import HookRefused as HookRefused
    from dragoman.errors import InputRequired as InputRequired
    from dragoman.errors import Internal as Internal
    from dragoman.errors import InvalidArguments as InvalidArguments
    from dragoman.errors import InvalidConfig as InvalidConfig
    from dragoman.errors import InvalidName as InvalidName
    from dragoman.errors import KeyFault as KeyFault
    from dragoman.errors import LimitReached as LimitReached
    from dragoman.errors import ModelFault as ModelFault
    from dragoman.errors import ModelGarbage as ModelGarbage
    from dragoman.errors import ModelNotFound as ModelNotFound
    from dragoman.errors import ModelQuotaSpent as ModelQuotaSpent
    from dragoman.errors import ModelRateLimited as ModelRateLimited
    from dragoman.errors import ModelRefused as ModelRefused
    from dragoman.errors import ModelRefusedKey as ModelRefusedKey
    from dragoman.errors import ModelTimeout as ModelTimeout
    from dragoman.errors import ModelUnavailable as ModelUnavailable
    from dragoman.errors import NeedsAuth as NeedsAuth
    from dragoman.errors import NobodyAnswered as NobodyAnswered
    from dragoman.errors import NotFound as NotFound
    from dragoman.errors import NotInstalled as NotInstalled
    from dragoman.errors import NotOpen as NotOpen
    from dragoman.errors import Outdated as Outdated
    from dragoman.errors import OwnFault as OwnFault
    from dragoman.errors import ProtocolFault as ProtocolFault
    from dragoman.errors import RateLimited as RateLimited
    from dragoman.errors import ServerError as ServerError
    from dragoman.errors import ServerFault as ServerFault
    from dragoman.errors import ShuttingDown as ShuttingDown
    from dragoman.errors import StoreFull as StoreFull
    from dragoman.errors import StoreUnavailable as StoreUnavailable
    from dragoman.errors import Timeout as Timeout
    from dragoman.errors import ToolChanged as ToolChanged
    from dragoman.errors import ToolDisabled as ToolDisabled
    from dragoman.errors import ToolFailed as ToolFailed
    from dragoman.errors import ToolFault as ToolFault
    from dragoman.errors import Unauthenticated as Unauthenticated
    from dragoman.errors import Uncertain as Uncertain
    from dragoman.errors import Unreachable as Unreachable
    from dragoman.events import Event as Event
    from dragoman.formats.import_files import ImportText as ImportText
    from dragoman.formats.import_plan import FoundAgent as FoundAgent
    from dragoman.formats.import_plan import FoundBundle as FoundBundle
    from dragoman.formats.import_plan import FoundConnector as FoundConnector
    from dragoman.formats.import_plan import ImportPlan as ImportPlan
    from dragoman.formats.import_plan import ImportProblem as ImportProblem
    from dragoman.formats.import_plan import RequiredInput as RequiredInput
    from dragoman.formats.variables import BaseFolders as BaseFolders
    from dragoman.hook_rule import BundleRules as BundleRules
    from dragoman.hooks.hooks import HookKind as HookKind
    from dragoman.hooks.protocol import Hook as Hook
    from dragoman.hooks.protocol import HookedCall as HookedCall
    from dragoman.hooks.protocol import Verdict as Verdict
    from dragoman.hub.agents import Agents as Agents
    from dragoman.hub.agents import AgentView as AgentView
    from dragoman.hub.approvals import ApprovalContext as ApprovalContext
    from dragoman.hub.approvals import Approvals as Approvals
    from dragoman.hub.approvals import ApprovalView as ApprovalView
    from dragoman.hub.attachments import Attachment as Attachment
    from dragoman.hub.audit import Audit as Audit
    from dragoman.hub.bundles import BundleDetails as BundleDetails
    from dragoman.hub.bundles import Bundles as Bundles
    from dragoman.hub.client_logins import ConnectedClients as ConnectedClients
    from dragoman.hub.cluster import ClusterService as ClusterService
    from dragoman.hub.cluster import ClusterStatus as ClusterStatus
    from dragoman.hub.cluster import HeldConnection as HeldConnection
    from dragoman.hub.code import Code as Code
    from dragoman.hub.configuration_files import ConfigurationFiles as ConfigurationFiles
    from dragoman.hub.connector_queries import AcceptedQuery as AcceptedQuery
    from dragoman.hub.connector_queries import ConnectorQueries as ConnectorQueries
    from dragoman.hub.connector_settings import ConnectorSettings as ConnectorSettings
    from dragoman.hub.connectors import ConnectorChange as ConnectorChange
    from dragoman.hub.connectors import Connectors as Connectors
    from dragoman.hub.connectors import ConnectorView as ConnectorView
    from dragoman.hub.credentials import AuthorizationLink as AuthorizationLink
    from dragoman.hub.credentials import AuthorizationPrompt as AuthorizationPrompt
    from dragoman.hub.credentials import Credentials as Credentials
    from dragoman.hub.credentials import CredentialView as CredentialView
    from dragoman.hub.credentials import KeyRotation as KeyRotation
    from dragoman.hub.deferred_tools import Footprint as Footprint
    from dragoman.hub.deferred_tools import ResolvedTools as ResolvedTools
    from dragoman.hub.deferred_tools import ToolFootprint as ToolFootprint
    from dragoman.hub.discovery import Discovery as Discovery
    from dragoman.hub.followed_registry import FollowedServer as FollowedServer
    from dragoman.hub.hooks import CallerHooks as CallerHooks
    from dragoman.hub.hooks import HooksView as HooksView
    from dragoman.hub.hooks import TriedHook as TriedHook
    from dragoman.hub.hub import BoundHub as BoundHub
    from dragoman.hub.hub import Hub as Hub
    from dragoman.hub.imported_agents import ImportedAgents as ImportedAgents
    from dragoman.hub.imports import Exports as Exports
    from dragoman.hub.imports import Imports as Imports
    from dragoman.hub.imports import ImportStep as ImportStep
    from dragoman.hub.messages import Messages as Messages
    from dragoman.hub.models import ModelProviderView as ModelProviderView
    from dragoman.hub.models import TestedModel as TestedModel
    from dragoman.hub.models import WorkspaceModels as WorkspaceModels
    from dragoman.hub.people import Erasure as Erasure
    from dragoman.hub.people import Myself as Myself
    from dragoman.hub.people import People as People
    from dragoman.hub.people_settings import AgentSettings as AgentSettings
    from dragoman.hub.people_settings import KeySettings as KeySettings
    from dragoman.hub.people_settings import LimitSettings as LimitSettings
    from dragoman.hub.people_settings import PreferenceSettings as PreferenceSettings
    from dragoman.hub.people_settings import UserSettings as UserSettings
    from dragoman.hub.people_settings import WorkspaceSettings as WorkspaceSettings
    from dragoman.hub.preferences import PreferencesView as PreferencesView
    from dragoman.hub.preferences import UserPreferences as UserPreferences
    from dragoman.hub.recipes import Recipes as Recipes
    from dragoman.hub.recipes import RecipeView as RecipeView
    from dragoman.hub.resources import FilledPrompt as FilledPrompt
    from dragoman.hub.resources import ListedByServers as ListedByServers
    from dragoman.hub.resources import PromptArgument as PromptArgument
    from dragoman.hub.resources import PromptMessage as PromptMessage
    from dragoman.hub.resources import Prompts as Prompts
    from dragoman.hub.resources import ReadResource as ReadResource
    from dragoman.hub.resources import Resource as Resource
    from dragoman.hub.resources import ResourceContent as ResourceContent
    from dragoman.hub.resources import Resources as Resources
    from dragoman.hub.resources import ResourceTemplate as ResourceTemplate
    from dragoman.hub.resources import ServerPrompt as ServerPrompt
    from dragoman.hub.rollout import Rollback as Rollback
    from dragoman.hub.rollout import Rollout as Rollout
    from dragoman.hub.rollout import RolloutStatus as RolloutStatus
    from dragoman.hub.runs import Runs as Runs
    from dragoman.hub.runs import RunView as RunView
    from dragoman.hub.server_requests import ServerRequests as ServerRequests
    from dragoman.hub.statistics import MetricGroup as MetricGroup
    from dragoman.hub.statistics import MetricNumbers as MetricNumbers
    from dragoman.hub.statistics import MetricPoint as MetricPoint
    from dragoman.hub.statistics import MetricSeries as MetricSeries
    from dragoman.hub.statistics import Statistics as Statistics
    from dragoman.hub.thread_tools import MissingTools as MissingTools
    from dragoman.hub.thread_tools import ThreadTools as ThreadTools
    from dragoman.hub.threads import Starter as Starter
    from dragoman.hub.threads import Threads as Threads
    from dragoman.hub.threads import ThreadView as ThreadView
    from dragoman.hub.tools import Tools as Tools
    from dragoman.hub.usage import KeyUsage as KeyUsage
    from dragoman.hub.usage import Usage as Usage
    from dragoman.hub.usage import UsageView as UsageView
    from dragoman.hub.usage import UsedLimit as UsedLimit
    from dragoman.identity.authenticator import Authenticator as Authenticator
    from dragoman.identity.directory import Person as Person
    from dragoman.people import ApiKey as ApiKey
    from dragoman.people import CallLimits as CallLimits
    from dragoman.people import ConnectedClient as ConnectedClient
    from dragoman.people import Preferences as Preferences
    from dragoman.people import Thread as Thread
    from dragoman.people import User as User
    from dragoman.people import UserLimits as UserLimits
    from dragoman.people import Workspace as Workspace
    from dragoman.recipe import Recipe as Recipe
    from dragoman.run import Message as Message
    from dragoman.run import Question as Question
    from dragoman.run import Run as Run
    from dragoman.run import RunError as RunError
    from dragoman.run import RunEvent as RunEvent
    from dragoman.run import RunLimits as RunLimits
    from dragoman.run import RunUsage as RunUsage
    from dragoman.run import Step as Step
    from dragoman.runs.dispatch import RunDispatcher as RunDispatcher
    from dragoman.runs.sent_prompts import SentMessage as SentMessage
    from dragoman.runs.sent_prompts import SentPrompt as SentPrompt
    from dragoman.runs.timeline import Timeline as Timeline
    from dragoman.runs.timeline import TimelineEntry as TimelineEntry
    from dragoman.sandbox.outcome import CodeError as CodeError
    from dragoman.sandbox.outcome import CodeLimits as CodeLimits
    from dragoman.sandbox.outcome import CodeOutput as CodeOutput
    from dragoman.scope import Caller as Caller
    from dragoman.settings import Settings as Settings
    from dragoman.store.audit_chain import ChainVerdict as ChainVerdict
    from dragoman.store.records import AcceptedRun as AcceptedRun
    from dragoman.store.records import Allowance as Allowance
    from dragoman.store.records import Approval as Approval
    from dragoman.store.records import AuditEntry as AuditEntry
    from dragoman.store.records import CallBinding as CallBinding
    from dragoman.store.records import CallRecord as CallRecord
    from dragoman.store.records import KeptResult as KeptResult
    from dragoman.store.records import ToolVersion as ToolVersion
    from dragoman.telemetry.metrics import ConnectorMetrics as ConnectorMetrics
    from dragoman.telemetry.metrics import ReadiedAgents as ReadiedAgents
    from dragoman.tool import Annotations as Annotations
    from dragoman.tool import BundledTool as BundledTool
    from dragoman.tool import CallError as CallError
    from dragoman.tool import CallMetadata as CallMetadata
    from dragoman.tool import CallObserver as CallObserver
    from dragoman.tool import ClientChannel as ClientChannel
    from dragoman.tool import Elicitation as Elicitation
    from dragoman.tool import ExchangedMessage as ExchangedMessage
    from dragoman.tool import OnElicitation as OnElicitation
    from dragoman.tool import OnMessage as OnMessage
    from dragoman.tool import OnProgress as OnProgress
    from dragoman.tool import Progress as Progress
    from dragoman.tool import Tool as Tool
    from dragoman.tool import ToolCall as ToolCall
    from dragoman.tool import ToolDefinition as ToolDefinition
    from dragoman.tool import ToolOutput as ToolOutput

# Looked up when first asked for: the command must answer --help long before the whole stack is loaded.
_HOMES = {
    name: home
    for home, names in {
        "dragoman.access.approvals": "RequestedCall",
        "dragoman.agent": "Agent AgentNumbers",
        "dragoman.agents.connector_query": "ConnectorQuery",
        "dragoman.agents.models": "FoundModel ModelChoice Models",
        "dragoman.agents.rollout": "RolloutFigures RolloutPlan RolloutThresholds",
        "dragoman.agents.work_context": "ConnectorCard",
        "dragoman.catalog.catalog": "ToolInfo",
        "dragoman.catalog.changes": "ToolChange ToolChanges",
        "dragoman.catalog.footprints": "Footprints",
        "dragoman.catalog.search.query": "SearchHit SearchQuery SearchResults",
        "dragoman.cluster.places": "PlaceCounts",
        "dragoman.cluster.protocol": "Node",
        "dragoman.connections.native.source": "NativeTool",
        "dragoman.connections.oauth.flow": "AuthorizationCallback StartedAuthorization",
        "dragoman.connections.source": "ConnectionStatus ServerNotice",
        "dragoman.connector": "Configuration Connector",
        "dragoman.discovery.inputs": "CommandArgument InputTemplate RegistryInput",
        "dragoman.discovery.registry": "RegistryPage",
        "dragoman.discovery.servers": "InstallMethod RegistryServer",
        "dragoman.errors": (
            "AnswerCut ApprovalPending ApprovalRefused CallerFault ClusterFault ClusterUnavailable Conflict "
            "ConnectTimeout ContextTooLong Denied DragomanError Forbidden HookFailed HookRefused "
            "InputRequired Internal "
            "InvalidArguments InvalidConfig "
            "InvalidName KeyFault LimitReached ModelFault ModelGarbage ModelNotFound "
            "ModelQuotaSpent ModelRateLimited ModelRefused ModelRefusedKey ModelTimeout "
            "ModelUnavailable NeedsAuth NobodyAnswered NotFound NotInstalled NotOpen Outdated OwnFault "
            "ProtocolFault RateLimited ServerError ServerFault ShuttingDown StoreFull StoreUnavailable "
            "Timeout ToolChanged ToolDisabled ToolFailed ToolFault Unauthenticated Uncertain Unreachable"
        ),
        "dragoman.events": "Event",
        "dragoman.formats.import_files": "ImportText",
        "dragoman.formats.import_plan": (
            "FoundAgent FoundBundle FoundConnector ImportPlan ImportProblem RequiredInput"
        ),
        "dragoman.formats.variables": "BaseFolders",
        "dragoman.hook_rule": "BundleRules",
        "dragoman.hooks.hooks": "HookKind",
        "dragoman.hooks.protocol": "Hook HookedCall Verdict",
        "dragoman.hub.agents": "AgentView Agents",
        "dragoman.hub.approvals": "ApprovalContext ApprovalView Approvals",
        "dragoman.hub.attachments": "Attachment",
        "dragoman.hub.audit": "Audit",
        "dragoman.hub.client_logins": "ConnectedClients",
        "dragoman.hub.cluster": "ClusterService ClusterStatus HeldConnection",
        "dragoman.hub.code": "Code",
        "dragoman.hub.configuration_files": "ConfigurationFiles",
        "dragoman.hub.connector_queries": "AcceptedQuery ConnectorQueries",
        "dragoman.hub.connector_settings": "ConnectorSettings",
        "dragoman.connections.boxes.boxes": "BoxFacts BoxNeed",
        "dragoman.connections.boxes.homes": "BoxHome",
        "dragoman.hub.connectors": "ConnectorChange ConnectorView Connectors",
        "dragoman.hub.credentials": (
            "AuthorizationLink AuthorizationPrompt CredentialView Credentials KeyRotation"
        ),
        "dragoman.hub.deferred_tools": "Footprint ResolvedTools ToolFootprint",
        "dragoman.hub.discovery": "Discovery",
        "dragoman.hub.followed_registry": "FollowedServer",
        "dragoman.hub.hooks": "CallerHooks HooksView TriedHook",
        "dragoman.hub.hub": "BoundHub Hub",
        "dragoman.bundle": "AnnotationOverride Bundle BundleEntry ParameterOverride ToolOverride",
        "dragoman.catalog.bundles": "ShownEntry",
        "dragoman.hub.bundles": "BundleDetails Bundles",
        "dragoman.hub.imported_agents": "ImportedAgents",
        "dragoman.hub.imports": "Exports ImportStep Imports",
        "dragoman.hub.messages": "Messages",
        "dragoman.hub.models": "ModelProviderView TestedModel WorkspaceModels",
        "dragoman.hub.people": "Erasure Myself People",
        "dragoman.hub.people_settings": (
            "AgentSettings KeySettings LimitSettings PreferenceSettings UserSettings WorkspaceSettings"
        ),
        "dragoman.hub.preferences": "PreferencesView UserPreferences",
        "dragoman.hub.recipes": "RecipeView Recipes",
        "dragoman.hub.resources": (
            "FilledPrompt ListedByServers PromptArgument PromptMessage Prompts ReadResource Resource "
            "ResourceContent ResourceTemplate Resources ServerPrompt"
        ),
        "dragoman.hub.rollout": "Rollback Rollout RolloutStatus",
        "dragoman.hub.runs": "RunView Runs",
        "dragoman.hub.server_requests": "ServerRequests",
        "dragoman.hub.thread_tools": "MissingTools ThreadTools",
        "dragoman.hub.statistics": "MetricGroup MetricNumbers MetricPoint MetricSeries Statistics",
        "dragoman.hub.threads": "Starter ThreadView Threads",
        "dragoman.hub.tools": "Tools",
        "dragoman.hub.usage": "KeyUsage Usage UsageView UsedLimit",
        "dragoman.identity.authenticator": "Authenticator",
        "dragoman.identity.directory": "Person",
        "dragoman.people": "ApiKey CallLimits ConnectedClient Preferences Thread User UserLimits Workspace",
        "dragoman.recipe": "Recipe",
        "dragoman.run": "Message Question Run RunError RunEvent RunLimits RunUsage Step",
        "dragoman.runs.dispatch": "RunDispatcher",
        "dragoman.runs.sent_prompts": "SentMessage SentPrompt",
        "dragoman.runs.timeline": "Timeline TimelineEntry",
        "dragoman.sandbox.outcome": "CodeError CodeLimits CodeOutput",
        "dragoman.scope": "Caller",
        "dragoman.settings": "Settings",
        "dragoman.store.audit_chain": "ChainVerdict",
        "dragoman.store.records": (
            "AcceptedRun Allowance Approval AuditEntry CallBinding CallRecord KeptResult ToolVersion"
        ),
        "dragoman.telemetry.metrics": "ConnectorMetrics ReadiedAgents",
        "dragoman.tool": (
            "Annotations BundledTool CallError CallMetadata CallObserver ClientChannel Elicitation "
            "ExchangedMessage OnElicitation OnMessage OnProgress Progress Tool ToolCall ToolDefinition "
            "ToolOutput"
        ),
    }.items()
    for name in names.split()
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from dragoman.collector import paused  # here: `import dragoman` by itself loads nothing

        with paused():  # to look for garbage is a tenth of the time that a hub takes to load
            return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
